package guards

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"jobledger/internal/racelab/scratch"
	"jobledger/ledger"
)

// Options say what to show.
type Options struct {
	Guard  string // one guard; empty: all
	Server string // a postgres:// URL of a server for scratch databases; empty: SQLite files

	// Progress, if set, hears of each scene that was played, out of how many.
	Progress func(done, total int)
}

// Removal is what happened without a guard.
type Removal struct {
	Guard     string   `json:"guard"`
	Does      string   `json:"does"`
	Where     string   `json:"where"`
	Others    []string `json:"others"`    // that stop the same mistake: gone with the guard and without it
	BrokenBy  string   `json:"broken_by"` // what was played
	Invariant string   `json:"invariant"` // what broke
	Held      bool     `json:"held"`      // alone, the guard held
	Answers   []string `json:"answers"`   // how it held: what others were answered that was no success
	Caught    bool     `json:"caught"`    // without it, the invariant broke
	Detail    []string `json:"detail"`    // what was seen without it; or, if it did not hold, with it
}

// Complete is what happened with all guards in place.
type Complete struct {
	OK     bool     `json:"ok"`
	Scenes int      `json:"scenes"`
	Detail []string `json:"detail"` // what broke
}

// Result is the whole table.
type Result struct {
	OK       bool      `json:"ok"`
	Engine   string    `json:"engine"`
	Guards   []Removal `json:"guards"`
	Complete Complete  `json:"complete"`
}

// Run takes away each guard that the engine has, plays its scene without and with it, and plays every
// scene with all guards in place.
//
// Errors: INVALID for a guard that is unknown or that the engine has not; INCONSISTENT, with the result,
// if a guard did not hold or its removal broke nothing; what the scratch database failed with.
func Run(ctx context.Context, o Options) (Result, error) {
	r := Result{OK: true, Engine: sqlite, Guards: []Removal{}}
	if scratch.IsServer(o.Server) {
		r.Engine = postgres
	}
	list, err := r.chosen(o.Guard)
	if err != nil {
		return Result{}, err
	}
	scenes := scenesOf(list)
	done, total := 0, 2*len(list)+len(scenes)
	play := func(s *scene, without ...*Guard) (*stage, error) {
		played, err := play(ctx, o.Server, s, without)
		if done++; o.Progress != nil {
			o.Progress(done, total)
		}
		return played, err
	}
	for _, g := range list {
		if err := r.remove(g, play); err != nil {
			return Result{}, fmt.Errorf("guard %s: %w", g.Name, err)
		}
	}
	if err := r.complete(scenes, play); err != nil {
		return Result{}, err
	}
	if !r.OK {
		const message = "a guard is not what it is thought to be: see the table"
		return r, &ledger.Error{Code: ledger.Inconsistent, Message: message}
	}
	return r, nil
}

// chosen gives the guards to show.
func (r *Result) chosen(name string) (list []*Guard, err error) {
	list = find(Names()...)
	if name != "" {
		if list = find(name); len(list) == 0 {
			return nil, ledger.InvalidField("guard", "there is no guard %q: there are %s",
				name, strings.Join(Names(), ", "))
		}
	}
	list = slices.DeleteFunc(list, func(g *Guard) bool { return !slices.Contains(g.Engines, r.Engine) })
	if len(list) == 0 {
		return nil, ledger.InvalidField("guard", "%s has no guard %q: it is of the other engine", r.Engine, name)
	}
	return list, nil
}

func scenesOf(list []*Guard) (scenes []*scene) {
	for _, g := range list {
		if !slices.Contains(scenes, g.scene) {
			scenes = append(scenes, g.scene)
		}
	}
	return scenes
}

type player func(s *scene, without ...*Guard) (*stage, error)

// remove plays a guard's scene with the guard alone, and without it.
func (r *Result) remove(g *Guard, play player) error {
	row := Removal{
		Guard: g.Name, Does: g.Does, Where: g.Where, Others: append([]string{}, g.Others...),
		BrokenBy: g.scene.title, Invariant: g.scene.invariant,
	}
	others := find(g.Others...)
	with, err := play(g.scene, others...)
	if err != nil {
		return err
	}
	without, err := play(g.scene, append(others, g)...)
	if err != nil {
		return err
	}
	row.Held = len(with.money) == 0 && (g.refuses || len(with.answers) == 0)
	row.Caught = len(without.money) > 0
	row.Answers, row.Detail = sorted(with.answers), sorted(without.money, without.answers)
	if !row.Held {
		row.Detail = sorted(with.money, with.answers)
	}
	if idle := without.tampering.idle(); len(idle) > 0 {
		row.Caught, row.Detail = false, []string{"it was not found where it should be: " + strings.Join(idle, "; ")}
	}
	r.OK = r.OK && row.Held && row.Caught
	r.Guards = append(r.Guards, row)
	return nil
}

// complete plays the scenes with all guards.
func (r *Result) complete(scenes []*scene, play player) error {
	r.Complete = Complete{Detail: []string{}, Scenes: len(scenes)}
	for _, s := range scenes {
		played, err := play(s)
		if err != nil {
			return fmt.Errorf("all guards in place, %s: %w", s.title, err)
		}
		for _, line := range sorted(played.money, played.answers) {
			r.Complete.Detail = append(r.Complete.Detail, s.title+": "+line)
		}
	}
	r.Complete.OK = len(r.Complete.Detail) == 0
	r.OK = r.OK && r.Complete.OK
	return nil
}

// play plays a scene without some guards on a scratch ledger of its own.
func play(ctx context.Context, server string, s *scene, without []*Guard) (*stage, error) {
	var changes []change
	for _, g := range without {
		changes = append(changes, g.change)
	}
	on, err := newStage(ctx, server, newTampering(changes...))
	if err == nil {
		err = s.play(ctx, on)
		err = cmp.Or(err, on.close())
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("the lab was stopped before its end: %w", ctx.Err())
	}
	return on, err
}

// sorted joins what was seen, each thing once.
func sorted(lists ...[]string) []string {
	lines := slices.Concat(lists...)
	slices.Sort(lines)
	return append([]string{}, slices.Compact(lines)...)
}
