package kube

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Applied returns the fields of a live object that Apply has set, as listed in its managed fields, in the form of
// structured-merge-diff, such as {"f:spec": {"f:type": {}}}.
func Applied(o Object) (map[string]any, error) {
	for _, m := range o.GetManagedFields() {
		if m.Manager != FieldManager || m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("read the managed fields of %s: %w", describe(o).operand(), err)
		}
		return fields, nil
	}
	return nil, nil
}
