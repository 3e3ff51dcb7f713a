package service

import (
	"errors"
	"fmt"
	"reflect"
	"time"
)

// CheckOptions returns all that is wrong with a struct of options: fields that are
// required and zero, and durations and integers that are negative. Of says whose options
// they are. It panics if a required field does not exist.
func CheckOptions(of string, options any, required ...string) error {
	var problems []error
	v := reflect.ValueOf(options)
	for _, name := range required {
		if v.FieldByName(name).IsZero() {
			problems = append(problems, fmt.Errorf("%s: Options.%s is required", of, name))
		}
	}
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case time.Duration, int, int64:
			if f.Int() < 0 {
				problems = append(problems, fmt.Errorf("%s: Options.%s is negative", of, v.Type().Field(i).Name))
			}
		}
	}
	return errors.Join(problems...)
}
