// Renders a chart with Go's templates, for tests on machines without helm: go run helm_render.go CHART < INPUT.
// INPUT is JSON with Helm's Values, Release and Chart. Only the functions that the chart uses are defined; toYaml writes
// JSON, which is YAML.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	decoder := json.NewDecoder(os.Stdin)
	decoder.UseNumber()
	var input map[string]interface{}
	check(decoder.Decode(&input))
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(template.FuncMap{
		"include": func(name string, data interface{}) (string, error) {
			var out bytes.Buffer
			err := all.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"toYaml": func(value interface{}) (string, error) {
			data, err := json.Marshal(value)
			return string(data), err
		},
		"nindent": func(spaces int, text string) string {
			pad := "\n" + strings.Repeat(" ", spaces)
			return pad + strings.ReplaceAll(text, "\n", pad)
		},
		"quote":     func(value interface{}) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"sha256sum": func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
	})
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "templates", "*"))
	check(err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		check(err)
		_, err = all.New(filepath.Base(path)).Parse(string(data))
		check(err)
	}
	for _, path := range paths {
		if name := filepath.Base(path); strings.HasSuffix(name, ".yaml") {
			fmt.Println("---")
			check(all.ExecuteTemplate(os.Stdout, name, input))
			fmt.Println()
		}
	}
}
