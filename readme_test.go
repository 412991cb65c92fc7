package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/internal/cli"
	"jobledger/ledger"
)

// The README has every code with its statuses and meaning, every command, and the two that set it up.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	for _, c := range ledger.Codes {
		row := fmt.Sprintf("| `%s` | %d | %d | %s |", c.Code, c.HTTP, c.Exit, c.Meaning)
		if !strings.Contains(readme, row) {
			t.Errorf("the README has not the row %s", row)
		}
	}
	for _, command := range []string{"go run . race", "go test ./..."} {
		if !strings.Contains(readme, "\n"+command) {
			t.Errorf("the README does not set up with %q", command)
		}
	}
	groups := [][]string{nil, {"job"}, {"reconcile"}, {"callback"}, {"lab"}, {"token"}, {"endpoint"}, {"events"}}
	for _, group := range groups {
		for _, command := range commandsOf(t, group) {
			name := strings.Join(append(group, command), " ")
			isGroup := slices.Contains([]string{
				"help", "job", "reconcile", "callback", "lab", "token", "endpoint", "events",
			}, command)
			if !isGroup && !strings.Contains(readme, "`"+name) {
				t.Errorf("the README has not the command %s", name)
			}
		}
	}
}

// commandsOf reads the names of a group's commands from its help.
func commandsOf(t *testing.T, group []string) (names []string) {
	t.Helper()
	var help bytes.Buffer
	args := append(append([]string{"jobledger"}, group...), "--help")
	p := cli.Program{Args: args, Stdout: &help, Stderr: &help}
	if exit := cli.Run(t.Context(), p); exit != 0 {
		t.Fatalf("%v: exit %d: %s", p.Args, exit, &help)
	}
	_, list, _ := strings.Cut(help.String(), "\nCommands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for _, line := range strings.Split(list, "\n") {
		if fields := strings.Fields(line); len(fields) > 0 && strings.HasPrefix(line, "  ") && line[2] != ' ' {
			names = append(names, fields[0])
		}
	}
	if len(names) == 0 {
		t.Fatalf("the help of %v names %v", group, names)
	}
	return names
}

// The picture in the README is the one that the lab draws.
func TestReadmePicture(t *testing.T) {
	drawn := filepath.Join(t.TempDir(), "lost-update.svg")
	must(t, "", "lab", "run", "lost-update", "--svg", drawn)
	shown, err := os.ReadFile("docs/lost-update.svg")
	now, drawErr := os.ReadFile(drawn)
	if err != nil || drawErr != nil || !bytes.Equal(shown, now) {
		t.Errorf("docs/lost-update.svg is another picture: %v, %v", err, drawErr)
	}
}
