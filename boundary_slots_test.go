//go:build unix

package main

// slot is one field that values come into: by a command, by a request with a path and a body, and by rows of
// books. In each of them $V is the value, and $N a name that nothing else has.
type slot struct {
	name   string
	values []boundary
	before string // commands that have to be run first; those with $V for values that are taken
	cli    string
	path   string
	body   string
	rows   string
	field  string // as the command and the request name it
	// bookField is as the rows name it.
	bookField string
	raw       bool // in JSON it is no text
	optional  bool // rows leave it out as the empty text
	kept      bool // what is taken can be found in the export
}

// submitted has a job at a provider.
const submitted = "grant --key=g$N -- o$N 5\njob create --owner=o$N --cost=5 -- j$N\n" +
	"job submit --provider=p$N -- j$N"

var slots = []slot{
	{
		name: "amount of a grant", values: amounts, field: "amount", bookField: "amount", raw: true,
		cli: "grant --key=$N -- o$N $V", path: "/v1/grants", body: `{"owner":"o$N","key":"$N","amount":$V}`,
		rows: "type=balance owner=o$N available=0\n" +
			"type=job id=j$N owner=o$N cost=9007199254740991 status=failed\n" +
			"type=refund ref=r$N job=j$N owner=o$N amount=$V",
	},
	{
		name: "amount of a revocation", values: amounts, field: "amount", raw: true,
		before: "grant --key=g$N -- o$N 9007199254740991",
		cli:    "revoke --key=$N --reason=r -- o$N $V",
		path:   "/v1/revocations", body: `{"owner":"o$N","key":"$N","reason":"r","amount":$V}`,
	},
	{
		name: "cost of a job", values: amounts, field: "cost", bookField: "cost", raw: true,
		before: "grant --key=g$N -- o$N 9007199254740991",
		cli:    "job create --owner=o$N --cost=$V -- j$N",
		path:   "/v1/jobs", body: `{"id":"j$N","owner":"o$N","cost":$V}`,
		rows: "type=balance owner=o$N available=0\ntype=job id=j$N owner=o$N cost=$V status=completed",
	},
	{
		name: "cost in the end", values: counts, field: "cost", bookField: "settled_cost",
		raw: true, optional: true,
		before: "grant --key=g$N -- o$N 9007199254740991\njob create --owner=o$N --cost=9007199254740991 -- j$N",
		cli:    "notify --cost=$V -- j$N completed",
		path:   "/v1/jobs/j$N/reports", body: `{"outcome":"completed","cost":$V}`,
		rows: "type=balance owner=o$N available=0\n" +
			"type=job id=j$N owner=o$N cost=9007199254740991 status=completed settled_cost=$V",
	},
	{
		name: "priority", values: counts, field: "priority", bookField: "priority", raw: true, optional: true,
		cli:  "grant --key=$N --priority=$V -- o$N 5",
		path: "/v1/grants", body: `{"owner":"o$N","key":"$N","amount":5,"priority":$V}`,
		rows: "type=lot owner=o$N ref=r$N available=5 priority=$V",
	},
	{
		name: "available", values: counts, bookField: "available",
		rows: "type=balance owner=o$N available=$V",
	},
	{
		name: "owner of a grant", values: ids, field: "owner", bookField: "owner", kept: true,
		cli:  "grant --key=$N -- $V 5",
		path: "/v1/grants", body: `{"owner":$V,"key":"$N","amount":5}`,
		rows: "type=balance owner=$V available=5",
	},
	{
		name: "key of a grant", values: ids, field: "key", bookField: "ref", kept: true,
		cli:  "grant --key=$V -- o$N 5",
		path: "/v1/grants", body: `{"owner":"o$N","key":$V,"amount":5}`,
		rows: "type=balance owner=o$N available=5\ntype=job id=j$N owner=o$N cost=5 status=failed\n" +
			"type=refund ref=$V job=j$N owner=o$N amount=5",
	},
	{
		name: "key of a revocation", values: handles, field: "key", kept: true,
		before: "grant --key=g$N -- o$N 5",
		cli:    "revoke --key=$V --reason=r -- o$N 5",
		path:   "/v1/revocations", body: `{"owner":"o$N","key":$V,"amount":5,"reason":"r"}`,
	},
	{
		name: "id of a job", values: ids, field: "id", bookField: "id", kept: true,
		before: "grant --key=g$N -- o$N 5",
		cli:    "job create --owner=o$N --cost=5 -- $V",
		path:   "/v1/jobs", body: `{"id":$V,"owner":"o$N","cost":5}`,
		rows: "type=balance owner=o$N available=0\ntype=job id=$V owner=o$N cost=5 status=completed",
	},
	{
		name: "owner of a job", values: handles, field: "owner",
		before: "grant --key=h$N -- $V 5",
		cli:    "job create --owner=$V --cost=5 -- j$N",
		path:   "/v1/jobs", body: `{"id":"j$N","owner":$V,"cost":5}`,
	},
	{
		name: "provider", values: handles, field: "provider", bookField: "provider", optional: true, kept: true,
		before: "grant --key=g$N -- o$N 5\njob create --owner=o$N --cost=5 -- j$N",
		cli:    "job submit --provider=$V -- j$N",
		path:   "/v1/jobs/j$N/attempts", body: `{"provider":$V}`,
		rows: "type=balance owner=o$N available=0\n" +
			"type=job id=j$N owner=o$N cost=5 status=processing provider=$V upstream_id=u",
	},
	{
		name: "upstream id", values: handles, field: "upstream_id", bookField: "upstream_id", optional: true,
		kept:   true,
		before: submitted,
		cli:    "job accepted --attempt=1 --upstream-id=$V -- j$N",
		path:   "/v1/jobs/j$N/attempts/1/accepted", body: `{"upstream_id":$V}`,
		rows: "type=balance owner=o$N available=0\n" +
			"type=job id=j$N owner=o$N cost=5 status=processing provider=p$N upstream_id=$V",
	},
	{
		name: "upstream id of a report", values: handles, field: "upstream_id", kept: true,
		before: submitted,
		cli:    "notify --upstream-id=$V -- j$N failed",
		path:   "/v1/jobs/j$N/reports", body: `{"outcome":"failed","upstream_id":$V}`,
	},
	{
		name: "id of a job that is canceled", values: ids, field: "id",
		cli: "job cancel -- $V", path: "/v1/jobs/$V/cancel", body: `{}`, // the jobs are those made above
	},
	{
		name: "expiry", values: times, field: "expires", bookField: "expires_at", optional: true,
		cli:  "grant --key=$N --expires=$V -- o$N 5",
		path: "/v1/grants", body: `{"owner":"o$N","key":"$N","amount":5,"expires":$V}`,
		rows: "type=lot owner=o$N ref=r$N available=5 expires_at=$V",
	},
	{
		name: "beginning", values: times, field: "effective", bookField: "effective_at", optional: true,
		cli:  "grant --key=$N --effective=$V -- o$N 5",
		path: "/v1/grants", body: `{"owner":"o$N","key":"$N","amount":5,"effective":$V}`,
		rows: "type=lot owner=o$N ref=r$N available=5 effective_at=$V",
	},
	{
		name: "deadline", values: times, field: "deadline", bookField: "created_at", optional: true,
		before: "grant --key=g$N -- o$N 5",
		cli:    "job create --owner=o$N --cost=5 --deadline=$V -- j$N",
		path:   "/v1/jobs", body: `{"id":"j$N","owner":"o$N","cost":5,"deadline":$V}`,
		rows: "type=balance owner=o$N available=0\n" +
			"type=job id=j$N owner=o$N cost=5 status=completed created_at=$V",
	},
	{
		name: "reason", values: texts, field: "reason", bookField: "reason", kept: true,
		cli:  "grant --key=$N --reason=$V -- o$N 5",
		path: "/v1/grants", body: `{"owner":"o$N","key":"$N","amount":5,"reason":$V}`,
		rows: "type=balance owner=o$N available=0\ntype=job id=j$N owner=o$N cost=5 status=completed reason=$V",
	},
	{
		name: "reason of a revocation", values: needed, field: "reason", kept: true,
		before: "grant --key=g$N -- o$N 5",
		cli:    "revoke --key=$N --reason=$V -- o$N 5",
		path:   "/v1/revocations", body: `{"owner":"o$N","key":"$N","amount":5,"reason":$V}`,
	},
	{
		name: "evidence", values: needed, field: "evidence", bookField: "evidence", kept: true,
		before: submitted,
		cli:    "reconcile reject --evidence=$V --operator=sue -- j$N",
		path:   "/v1/jobs/j$N/reconcile/reject", body: `{"evidence":$V,"operator":"sue"}`,
		rows: "type=balance owner=o$N available=0\n" +
			"type=job id=j$N owner=o$N cost=5 status=failed submission=rejected evidence=$V",
	},
	{
		name: "evidence of a rejection", values: needed, field: "evidence", kept: true,
		before: submitted,
		cli:    "job rejected --attempt=1 --evidence=$V -- j$N",
		path:   "/v1/jobs/j$N/attempts/1/rejected", body: `{"evidence":$V}`,
	},
	{
		name: "reason of a doubt", values: needed, field: "reason", kept: true,
		before: submitted,
		cli:    "job uncertain --attempt=1 --reason=$V -- j$N",
		path:   "/v1/jobs/j$N/attempts/1/uncertain", body: `{"reason":$V}`,
	},
	{
		name: "reason of a report", values: texts, field: "reason", kept: true,
		before: submitted,
		cli:    "notify --source=poll --reason=$V -- j$N failed",
		path:   "/v1/jobs/j$N/reports", body: `{"outcome":"failed","source":"poll","reason":$V}`,
	},
	{
		name: "operator", values: handles, field: "operator", kept: true,
		before: submitted,
		cli:    "reconcile reject --evidence=e --operator=$V -- j$N",
		path:   "/v1/jobs/j$N/reconcile/reject", body: `{"evidence":"e","operator":$V}`,
	},
	{
		name: "attempt of a report", values: attempts, field: "attempt", raw: true,
		before: submitted,
		cli:    "notify --attempt=$V -- j$N failed",
		path:   "/v1/jobs/j$N/reports", body: `{"outcome":"failed","attempt":$V}`,
	},
	{
		name: "lot of a revocation", values: refusedOf(handles), field: "lot",
		before: "grant --key=g$N -- o$N 5",
		cli:    "revoke --key=$N --reason=r --lot=$V -- o$N 5",
		path:   "/v1/revocations", body: `{"owner":"o$N","key":"$N","amount":5,"reason":"r","lot":$V}`,
	},
	{
		name: "metadata of a grant", values: metadata, field: "metadata", raw: true,
		cli:  "grant --key=$N --metadata=$V -- o$N 5",
		path: "/v1/grants", body: `{"owner":"o$N","key":"$N","amount":5,"metadata":$V}`,
	},
	{
		name: "metadata of a job", values: metadata, field: "metadata", raw: true,
		before: "grant --key=g$N -- o$N 5",
		cli:    "job create --owner=o$N --cost=5 --metadata=$V -- j$N",
		path:   "/v1/jobs", body: `{"id":"j$N","owner":"o$N","cost":5,"metadata":$V}`,
	},
}
