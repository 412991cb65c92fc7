// Package lesson holds the lab's lessons. Each is a mistake that loses money, played step by step on a
// real database in the order that a script fixes, so that it goes wrong the same way every time; and
// the smallest change that stops it. The SQL here that is wrong is wrong on purpose, and nowhere else.
//
// [Run] plays a lesson in a scratch database of its own and checks that the wrong version ended with a
// wrong number, and the fixed one with all of them right.
package lesson

import "slices"

// The engines, by the names that the lessons and their results give them.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

var everyEngine = []string{SQLite, Postgres}

// titles are the engines as people write them.
var titles = map[string]string{SQLite: "SQLite", Postgres: "PostgreSQL"}

// Lesson is one mistake and its fix.
type Lesson struct {
	Name    string
	Title   string   // what happens, in a few words
	Shows   string   // what there is to see, in two sentences
	Engines []string // those on which the mistake can be made
	Actors  []string // the programs that meet at the database, each with its own connection and variables
	Tables  string   // the SQL that makes the tables and what is in them

	// Wrong and Fixed are scripts, as [parse] reads them. They differ as little as can be.
	Wrong, Fixed string

	Questions []Question // the first is watched while the script plays
	Guard     string     // what stops it, in one sentence
	Function  string     // the function of the product that holds this guard, as go doc finds it
}

// Question asks the database for a number that has one right answer.
type Question struct {
	Name  string
	Query string // gives one row of one number
	Want  int64
}

// All gives the lessons, in the order in which a course takes them.
func All() []Lesson {
	return slices.Concat(lessonsOfReading, lessonsOfCommits, lessonsOfBelonging)
}

// Names gives the names of the lessons, in the same order.
func Names() (names []string) {
	for _, l := range All() {
		names = append(names, l.Name)
	}
	return names
}

// Find gives a lesson by its name.
func Find(name string) (l Lesson, found bool) {
	all := All()
	i := slices.IndexFunc(all, func(l Lesson) bool { return l.Name == name })
	if i < 0 {
		return Lesson{}, false
	}
	return all[i], true
}
