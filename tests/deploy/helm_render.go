// Renders a chart with Go's templates, for tests on machines without helm: go run helm_render.go CHART < INPUT.
// INPUT is JSON with Helm's Values, Release and Chart. Only the functions that the chart uses are defined.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// toYaml writes maps and lists in blocks, as Helm does, so that a template may go on after them; scalars are JSON.
func toYaml(value interface{}) string {
	var lines []string
	switch one := value.(type) {
	case map[string]interface{}:
		var keys []string
		for key := range one {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			name, _ := json.Marshal(key)
			lines = append(lines, string(name)+":"+below(one[key], "  "))
		}
	case []interface{}:
		for _, item := range one {
			lines = append(lines, "-"+strings.Replace(below(item, "  "), "\n  ", " ", 1))
		}
	}
	if lines != nil {
		return strings.Join(lines, "\n")
	}
	scalar, err := json.Marshal(value)
	check(err)
	return string(scalar)
}

// below writes a value after a key: a scalar on its line, a block under it.
func below(value interface{}, pad string) string {
	text := toYaml(value)
	isBlock := false
	switch one := value.(type) {
	case map[string]interface{}:
		isBlock = len(one) > 0
	case []interface{}:
		isBlock = len(one) > 0
	}
	if !isBlock {
		return " " + text
	}
	return "\n" + pad + strings.ReplaceAll(text, "\n", "\n"+pad)
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
		"toYaml": toYaml,
		"dict": func(pairs ...interface{}) map[string]interface{} {
			made := map[string]interface{}{}
			for at := 0; at < len(pairs); at += 2 {
				made[pairs[at].(string)] = pairs[at+1]
			}
			return made
		},
		"default": func(otherwise, value interface{}) interface{} {
			if value == nil || value == "" {
				return otherwise
			}
			return value
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
