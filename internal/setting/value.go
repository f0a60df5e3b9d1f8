// Package setting converts settings between values and their text on the command line and in the configuration file.
// Its errors are worded for users. It imports no other package of this module.
package setting

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Text is a setting as text, such as a Value. It is a pflag.Value.
type Text interface {
	fmt.Stringer
	Set(text string) error
	Type() string
}

// Value is a setting of a type.
type Value[T any] struct {
	To   *T
	Read func(text string) (T, error)
	Kind string // what help calls its text, such as PORT
}

// Set sets the value. An invalid text leaves it as it is.
func (v Value[T]) Set(text string) error {
	parsed, err := v.Read(text)
	if err == nil {
		*v.To = parsed
	}
	return err
}

// String returns the value in the form that Set accepts; "" for the zero value.
func (v Value[T]) String() string { return strings.Join(Texts(reflect.ValueOf(*v.To)), ",") }

// Texts returns the texts by which Set sets a value, one after the other; none for the zero value.
func Texts(value reflect.Value) (all []string) {
	if value.IsZero() {
		return nil
	}
	switch value = reflect.Indirect(value); value.Kind() {
	case reflect.Map:
		for key, one := range value.Seq2() {
			all = append(all, fmt.Sprintf("%v=%v", key, one))
		}
		slices.Sort(all)
	default:
		all = []string{fmt.Sprint(value)}
	}
	if all == nil {
		all = []string{""} // it deletes what was set
	}
	return all
}

// Type returns the kind.
func (v Value[T]) Type() string { return v.Kind }

// Optional reads a value that may be left open: it is then nil.
func Optional[T any](read func(text string) (T, error)) func(text string) (*T, error) {
	return func(text string) (*T, error) {
		v, err := read(text)
		return &v, err
	}
}

// Word reads one of the allowed words, in any case.
func Word[T ~string](allowed ...T) func(text string) (T, error) {
	return func(text string) (none T, err error) {
		i := slices.IndexFunc(allowed, func(word T) bool { return strings.EqualFold(string(word), text) })
		if i < 0 {
			return none, fmt.Errorf("must be one of %s", strings.ReplaceAll(Words(allowed...), "|", ", "))
		}
		return allowed[i], nil
	}
}

// Words is the kind of a setting that is one of the allowed words, such as all|some.
func Words[T ~string](allowed ...T) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(allowed), "[]"), " ", "|")
}

// The kinds of pairs. A value of OnePair may contain commas.
const (
	OnePair   = "KEY=VALUE"
	ManyPairs = "KEY=VALUE,..."
)

// Pairs reads pairs of key and value, which are added to those of to: separated by commas, unless the kind is OnePair.
// The empty text deletes all pairs.
func Pairs[M ~map[K]V, K ~string, V any](to *M, kind string, read func(key, value string) (V, error)) func(text string) (M, error) {
	return func(text string) (M, error) {
		if text == "" {
			return M{}, nil
		}
		all := M{}
		maps.Copy(all, *to)
		pairs := []string{text}
		if kind != OnePair {
			pairs = strings.Split(text, ",")
		}
		for _, pair := range pairs {
			key, value, found := strings.Cut(pair, "=")
			if !found {
				return nil, fmt.Errorf("%q is not KEY=VALUE", pair)
			}
			parsed, err := read(key, value)
			if err != nil {
				return nil, err
			}
			all[K(key)] = parsed
		}
		return all, nil
	}
}

// Over returns a struct of pointers and maps with the fields of given, and those of recorded for nil ones.
func Over[T any](given, recorded T) T {
	fields, others := reflect.ValueOf(&given).Elem(), reflect.ValueOf(recorded)
	for i := range fields.NumField() {
		if field := fields.Field(i); field.IsNil() {
			field.Set(others.Field(i))
		}
	}
	return given
}
