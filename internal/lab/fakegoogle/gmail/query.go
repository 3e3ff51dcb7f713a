package gmail

import (
	"slices"
	"strings"
	"unicode"

	"headroom/internal/lab/fakegoogle/wire"
)

// A query is a parsed q.
type query struct {
	matches matcher
	// reachesSpamTrash is set when the query itself asks for spam or trash, which
	// a listing leaves out otherwise.
	reachesSpamTrash bool
}

// A matcher reports whether a message is meant.
type matcher func(*message) bool

// parseQuery reads Gmail's search syntax: terms that must all hold, each a word, a
// "phrase" or OPERATOR:VALUE, negated by "-". OR joins the two terms beside it,
// closer than the space between others (unverified); (a b) groups terms, {a b}
// asks for any of them, and subject:(a b) gives each the operator. AND says
// nothing, AROUND is a word. A name before ":" that is no operator belongs to the
// text that is looked for, as at Google; an operator whose value cannot be read is
// 400, so that no client believes itself served (unverified).
func parseQuery(text string, how searcher) (query, *wire.Error) {
	p := queryParser{tokens: queryTokens(text), how: how}
	matches, bad := p.all("", "")
	if bad != nil {
		return query{}, bad
	}
	return query{matches: matches, reachesSpamTrash: p.reachesSpamTrash}, nil
}

// deepestQuery bounds the nesting of groups.
const deepestQuery = 50

type queryParser struct {
	tokens           []string
	how              searcher
	depth            int
	reachesSpamTrash bool
}

// peek returns the next token; "" where there is none.
func (p *queryParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *queryParser) take() string {
	token := p.peek()
	p.tokens = p.tokens[min(1, len(p.tokens)):]
	return token
}

// all reads terms up to a closing bracket, or to the end where that is "". Words
// among them have the operator, where there is one.
func (p *queryParser) all(operator, closing string) (matcher, *wire.Error) {
	terms, bad := p.terms(operator, closing)
	return func(m *message) bool {
		return !slices.ContainsFunc(terms, func(t matcher) bool { return !t(m) })
	}, bad
}

// any is all for {a b}.
func (p *queryParser) any(operator, closing string) (matcher, *wire.Error) {
	terms, bad := p.terms(operator, closing)
	return func(m *message) bool {
		return slices.ContainsFunc(terms, func(t matcher) bool { return t(m) })
	}, bad
}

// terms reads what all and any join. A bracket that is not closed ends with the
// query, and one that was not opened is passed over.
func (p *queryParser) terms(operator, closing string) ([]matcher, *wire.Error) {
	if p.depth++; p.depth > deepestQuery {
		return nil, wire.BadRequest("The query is nested too deeply")
	}
	defer func() { p.depth-- }()
	var terms []matcher
	for len(p.tokens) > 0 {
		switch token := p.peek(); {
		case token == closing:
			p.take()
			return terms, nil
		case token == ")" || token == "}" || token == "AND" || isOr(token):
			p.take() // beside nothing that it could join
			continue
		}
		term, bad := p.alternatives(operator)
		if bad != nil {
			return nil, bad
		}
		terms = append(terms, term)
	}
	return terms, nil
}

func isOr(token string) bool { return token == "OR" || token == "|" }

// alternatives reads a term and those that OR joins to it.
func (p *queryParser) alternatives(operator string) (matcher, *wire.Error) {
	first, bad := p.term(operator)
	if bad != nil || !isOr(p.peek()) || len(p.tokens) == 1 || p.tokens[1] == ")" || p.tokens[1] == "}" {
		return first, bad
	}
	p.take()
	rest, bad := p.alternatives(operator)
	return func(m *message) bool { return first(m) || rest(m) }, bad
}

func (p *queryParser) term(operator string) (matcher, *wire.Error) {
	token := p.take()
	if token == "-" {
		reaches := p.reachesSpamTrash
		term, bad := p.term(operator)
		p.reachesSpamTrash = reaches // what is not wanted is not asked for
		return func(m *message) bool { return !term(m) }, bad
	}
	name, value, hasName := strings.Cut(token, ":")
	name = strings.ToLower(name)
	switch {
	case token == "(":
		return p.all(operator, ")")
	case token == "{":
		return p.any(operator, "}")
	case strings.HasPrefix(token, `"`) || !hasName || !isOperator(name):
		if operator != "" {
			return p.operator(operator, unquote(token))
		}
		return hasText(unquote(token)), nil
	case value == "" && p.peek() == "(":
		p.take()
		return p.all(name, ")")
	case value == "" && p.peek() == "{":
		p.take()
		return p.any(name, "}")
	}
	return p.operator(name, unquote(value))
}

func (p *queryParser) operator(name, value string) (matcher, *wire.Error) {
	term, ok := p.how.term(name, value)
	if !ok {
		return nil, wire.BadRequest("The fake cannot read " + name + ":" + value + " in a query")
	}
	place := strings.ToLower(value)
	if (name == "in" || name == "label" || name == "is") && (place == "spam" || place == "trash" || place == "anywhere") {
		p.reachesSpamTrash = true
	}
	return term, nil
}

// queryTokens splits a query at spaces and around brackets, outside quotes. A "-"
// that begins a term is a token of its own; a "+" before one has no effect here.
func queryTokens(text string) []string {
	var tokens []string
	var b strings.Builder
	flush := func() {
		token := strings.TrimLeft(b.String(), "+")
		b.Reset()
		for strings.HasPrefix(token, "-") {
			tokens = append(tokens, "-")
			token = token[1:]
		}
		if token != "" {
			tokens = append(tokens, token)
		}
	}
	quoted := false
	for _, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
			b.WriteRune(r)
		case quoted:
			b.WriteRune(r)
		case unicode.IsSpace(r):
			flush()
		case strings.ContainsRune("(){}", r):
			flush()
			tokens = append(tokens, string(r))
		default:
			b.WriteRune(r)
		}
	}
	flush()
	// A dash before nothing negates nothing.
	for len(tokens) > 0 && tokens[len(tokens)-1] == "-" {
		tokens = tokens[:len(tokens)-1]
	}
	return tokens
}

func unquote(s string) string { return strings.ReplaceAll(s, `"`, "") }
