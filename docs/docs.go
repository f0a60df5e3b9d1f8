// Package docs embeds the documentation that the program itself serves.
package docs

import _ "embed"

// OpenAPI is the OpenAPI document of the translation service, in JSON: see internal/translation.
//
//go:embed openapi.json
var OpenAPI []byte
