// Package publish writes what a helper has to report: a stream of values to an object, and Kubernetes Events. Both
// write outside of the helper's loop and at a bounded rate, so that an API server that is slow or away delays reports
// alone.
package publish
