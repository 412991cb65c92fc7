package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// commandLine is what the words of a command line mean.
type commandLine struct {
	app     *cli.App
	path    []*cli.Command // from the top to the command; empty before a word names one
	flags   []givenFlag
	args    []string
	help    bool
	mistake error // the first thing wrong with a flag
}

type givenFlag struct{ name, value string }

// parseArgs reads a command line in which flags may stand anywhere, before or after the arguments
// and the command's name. Everything after -- is an argument. It finds all mistakes that need no
// knowledge of the values, so that the library, which reads a wrong line in surprising ways, only
// ever sees a right one.
func parseArgs(app *cli.App, words []string) (*commandLine, error) {
	l := &commandLine{app: app}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == "--":
			l.args = append(l.args, words...)
			words = nil
		case word == "-h" || word == "--help":
			l.help = true
		case isFlag(word):
			words = l.addFlag(word, words)
		default:
			if err := l.addWord(word); err != nil {
				return nil, err
			}
		}
	}
	if l.isHelpOn() {
		return parseArgs(app, append(l.args, "--help"))
	}
	if l.help {
		return l, nil
	}
	return l, l.check()
}

// isHelpOn tells whether the line is "help COMMAND".
func (l *commandLine) isHelpOn() bool {
	return !l.help && len(l.path) > 0 && l.command().Name == "help" &&
		(len(l.args) == 0 || l.args[0] != exitCodesTopic)
}

// isFlag tells flags from arguments. A word such as -5 is a value: a wrong one, but of an argument.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && !strings.ContainsRune("0123456789.", rune(word[1]))
}

// addWord takes a word as the name of a command, while one is to come, and then as an argument.
func (l *commandLine) addWord(word string) error {
	choice := l.choice()
	if len(choice) == 0 {
		l.args = append(l.args, word)
		return nil
	}
	i := slices.IndexFunc(choice, func(c *cli.Command) bool { return c.HasName(word) })
	if i < 0 {
		if l.mistake != nil && !l.help {
			return l.mistake // the word may be the value of a flag that was mistyped
		}
		return usage("", "unknown command %q%s", l.names()+word, didYouMean(word, commandNames(choice)))
	}
	l.path = append(l.path, choice[i])
	return nil
}

// addFlag takes a flag and, if it needs one and has none after a =, the word that follows as its
// value. It gives the words that are left.
func (l *commandLine) addFlag(word string, rest []string) []string {
	typed, value, joined := strings.Cut(word, "=")
	flag := findFlag(l.everyFlag(), typed)
	if flag == nil {
		long := "--" + strings.TrimLeft(typed, "-")
		l.note(usage(long[2:], "unknown flag %s%s", typed, didYouMean(long, flagNames(l.everyFlag()))))
		return rest
	}
	name := flag.Names()[0]
	switch {
	case !takesValue(flag):
		if _, err := strconv.ParseBool(value); joined && err != nil {
			l.note(usage(name, "flag --%s takes no value", name))
		} else if !joined {
			value = "true"
		}
	case joined:
	case len(rest) == 0 || rest[0] == "--" || isFlag(rest[0]):
		l.note(usage(name, "flag --%s needs a value", name))
	default:
		value, rest = rest[0], rest[1:]
	}
	l.flags = append(l.flags, givenFlag{name, value})
	return rest
}

func (l *commandLine) note(err error) {
	if l.mistake == nil {
		l.mistake = err
	}
}

// command is the last one named.
func (l *commandLine) command() *cli.Command { return l.path[len(l.path)-1] }

// choice is what commands the next word may name.
func (l *commandLine) choice() []*cli.Command {
	if len(l.path) == 0 {
		return l.app.Commands
	}
	return l.command().Subcommands
}

// names gives the commands named so far, each followed by a space.
func (l *commandLine) names() string {
	var b strings.Builder
	for _, c := range l.path {
		b.WriteString(c.Name + " ")
	}
	return b.String()
}

// everyFlag is the flags of the whole tree: a flag may stand before the name of its command. A name
// takes a value everywhere or nowhere.
func (l *commandLine) everyFlag() []cli.Flag {
	all := slices.Clone(l.app.Flags)
	var walk func([]*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			all = append(all, c.Flags...)
			walk(c.Subcommands)
		}
	}
	walk(l.app.Commands)
	return all
}

// findFlag finds the flag that was typed as --name.
func findFlag(list []cli.Flag, typed string) cli.Flag {
	for _, f := range list {
		if slices.Contains(f.Names(), strings.TrimPrefix(typed, "--")) {
			return f
		}
	}
	return nil
}

func flagNames(list []cli.Flag) (names []string) {
	for _, f := range list {
		names = append(names, "--"+f.Names()[0])
	}
	return names
}

func takesValue(f cli.Flag) bool {
	g, ok := f.(cli.DocGenerationFlag)
	return ok && g.TakesValue()
}

// check finds what is missing, unknown, given twice or too much.
func (l *commandLine) check() error {
	choice := l.choice()
	switch {
	case l.mistake != nil:
		return l.mistake
	case len(l.path) == 0:
		return usage("", "no command given: see %s --help", programName)
	case len(choice) > 0:
		return usage("", "%sneeds a command: %s", l.names(), strings.Join(commandNames(choice), ", "))
	}
	return checks(l.checkFlags(), l.checkArgs(), l.checkRequired())
}

// checkFlags finds flags of other commands, and flags given twice.
func (l *commandLine) checkFlags() error {
	allowed := slices.Concat(l.app.Flags, l.command().Flags)
	for i, g := range l.flags {
		if findFlag(allowed, g.name) == nil {
			return usage(g.name, "unknown flag --%s for %s%s", g.name, strings.TrimSpace(l.names()),
				didYouMean("--"+g.name, flagNames(allowed)))
		}
		if given(g.name, l.flags[:i]) {
			return usage(g.name, "flag --%s is given twice", g.name)
		}
	}
	return nil
}

func given(name string, flags []givenFlag) bool {
	return slices.ContainsFunc(flags, func(g givenFlag) bool { return g.name == name })
}

// checkArgs compares the arguments with the command's ArgsUsage, such as "OWNER [AMOUNT]" or, with any
// number of the last one, "COMMAND...".
func (l *commandLine) checkArgs() error {
	wanted := strings.Fields(l.command().ArgsUsage)
	for i, name := range wanted {
		if i >= len(l.args) && !strings.HasPrefix(name, "[") {
			return usage(strings.Trim(strings.ToLower(name), "."), "missing argument %s: %s %s%s",
				name, programName, l.names(), l.command().ArgsUsage)
		}
	}
	if len(l.args) > len(wanted) && !strings.HasSuffix(l.command().ArgsUsage, "...") {
		return usage("", "too many arguments: %q is not one of %s", l.args[len(wanted)],
			strings.TrimSpace(programName+" "+l.names()+l.command().ArgsUsage))
	}
	return nil
}

func (l *commandLine) checkRequired() error {
	for _, f := range l.command().Flags {
		name := f.Names()[0]
		if r, ok := f.(cli.RequiredFlag); ok && r.IsRequired() && !given(name, l.flags) {
			return usage(name, "%sneeds the flag --%s", l.names(), name)
		}
	}
	return nil
}

// argv writes the line in the one order that the library reads right:
//
//	program --global=value command --flag=value -- argument
func (l *commandLine) argv() []string {
	globals, own := []string{programName}, []string{}
	for _, g := range l.flags {
		word := "--" + g.name + "=" + g.value
		if findFlag(l.app.Flags, g.name) != nil {
			globals = append(globals, word)
		} else {
			own = append(own, word)
		}
	}
	for _, c := range l.path {
		globals = append(globals, c.Name)
	}
	return slices.Concat(globals, own, []string{"--"}, l.args)
}

// wantsJSON looks for --json in a line that may be wrong in any way.
func wantsJSON(words []string) bool {
	for _, word := range words {
		name, value, joined := strings.Cut(word, "=")
		if name == "--" {
			return false
		}
		if on, err := strconv.ParseBool(value); name == "--json" && (!joined || on || err != nil) {
			return true
		}
	}
	return false
}

func commandNames(list []*cli.Command) (names []string) {
	for _, c := range list {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}
