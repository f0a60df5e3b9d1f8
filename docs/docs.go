// Package docs holds what of the documentation the program itself hands out.
package docs

import _ "embed"

// OpenAPI describes the interface of the translation service, in JSON: see internal/translation.
//
//go:embed openapi.json
var OpenAPI []byte
