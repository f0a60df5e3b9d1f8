package ui

import "io"

// Column is a column of a table, with a row for each T. Answers for programs have the T itself.
type Column[T any] struct {
	Title string
	Wide  bool           // only in the wide table
	Cell  func(T) string // "": not known
	// Paint adds colours to a cell that was escaped for terminals; nil: none.
	Paint func(cell string) string
}

// Columns are the columns of a table, in order.
type Columns[T any] []Column[T]

// Print writes the table, with all columns if the format is wide.
func (c Columns[T]) Print(w io.Writer, f Format, all []T) error {
	rows, paints := make([][]string, 1+len(all)), []func(string) string(nil)
	for _, column := range c {
		if column.Wide && f != FormatWide {
			continue
		}
		paints, rows[0] = append(paints, column.Paint), append(rows[0], column.Title)
		for i, one := range all {
			rows[i+1] = append(rows[i+1], OrDash(column.Cell(one)))
		}
	}
	return Table(w, rows, func(column int, cell string) string {
		if paint := paints[column]; paint != nil {
			return paint(cell)
		}
		return cell
	})
}
