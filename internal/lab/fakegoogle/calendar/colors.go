package calendar

import "strconv"

type colors struct {
	Kind     string           `json:"kind"`
	Updated  string           `json:"updated"`
	Calendar map[string]color `json:"calendar"`
	Event    map[string]color `json:"event"`
}

type color struct {
	Background string `json:"background"`
	Foreground string `json:"foreground"`
}

// palette is Google's, by the ids that calendars and events name.
var palette = colors{
	Kind: "calendar#colors", Updated: "2012-02-14T00:00:00.000Z",
	Calendar: palettePart(
		"#ac725e", "#d06b64", "#f83a22", "#fa573c", "#ff7537", "#ffad46", "#42d692", "#16a765",
		"#7bd148", "#b3dc6c", "#fbe983", "#fad165", "#92e1c0", "#9fe1e7", "#9fc6e7", "#4986e7",
		"#9a9cff", "#b99aff", "#c2c2c2", "#cabdbf", "#cca6ac", "#f691b2", "#cd74e6", "#a47ae2",
	),
	Event: palettePart(
		"#a4bdfc", "#7ae7bf", "#dbadff", "#ff887c", "#fbd75b", "#ffb878", "#46d6db", "#e1e1e1",
		"#5484ed", "#51b749", "#dc2127",
	),
}

func palettePart(backgrounds ...string) map[string]color {
	part := map[string]color{}
	for i, background := range backgrounds {
		part[strconv.Itoa(i+1)] = color{Background: background, Foreground: "#1d1d1d"}
	}
	return part
}
