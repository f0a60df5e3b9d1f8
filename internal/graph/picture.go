package graph

import "liqonet.io/liqonet/internal/svg"

// Sizes of the picture, in pixels.
const (
	lineHeight = 16
	boxWidth   = 240
	boxHeight  = 4 * lineHeight // of a gateway
	boxRunes   = 31             // that fit into a box
	margin     = 20
	title      = 2 * lineHeight        // height of a cluster's
	groupWidth = 2*boxWidth + 3*margin // its nodes, and its gateways
	labelRunes = 50
	labelWidth = 350                     // of a tunnel
	gateways   = margin*2 + boxWidth     // left of them are the nodes of the first cluster
	pitch      = boxHeight + margin*3/2  // of gateways below each other
	ownGateway = margin + gateways       // where those of the first cluster begin
	ownEnd     = margin + groupWidth - 2 // where this cluster ends
)

// drawing is a picture on its way.
type drawing struct {
	svg.Picture
	at   map[string][2]int // left upper corners of gateways, by id
	late []func()          // draw boxes, which cover lines
}

// Picture is the graph with the first cluster on the left, and its peers on the right.
func (g Graph) Picture() *svg.Picture {
	d, p := g.diagram(), &drawing{at: make(map[string][2]int)}
	if len(d.groups) == 0 {
		p.Width, p.Height = boxWidth, 2*margin
		p.Text(margin, margin, "title", "no peerings", boxRunes)
		return &p.Picture
	}
	own, peers, most := d.groups[0], d.groups[1:], 1
	for _, peer := range peers {
		for _, side := range peer.sides {
			most = max(most, len(side))
		}
	}
	x, y := ownEnd+most*labelWidth, margin
	p.Width = x + margin
	for i, peer := range peers {
		p.Width = max(p.Width, x+peer.width()+margin)
		height := peer.height()
		for j, side := range peer.sides {
			p.column(side, x+margin, y+title)
			if j == 0 && i < len(own.sides) { // those of the first cluster are in the same order
				p.column(own.sides[i], ownGateway, y+title)
				height = max(height, title+len(own.sides[i])*pitch)
			}
		}
		p.group(peer, x, y, x+2*margin+boxWidth, height)
		y += height + margin
	}
	y = max(y, 2*margin+own.height())
	p.group(own, margin, margin, 2*margin, y-2*margin)
	p.Height = y
	p.tunnels(d.edges, most)
	for _, draw := range p.late {
		draw()
	}
	return &p.Picture
}

// width is that of a cluster: one that was not read has no nodes.
func (g group) width() int {
	if g.nodes == nil {
		return boxWidth + 2*margin
	}
	return groupWidth
}

// height is what a cluster takes at least.
func (g group) height() int {
	rows := 1
	for _, side := range g.sides {
		rows = max(rows, len(side))
	}
	height := title + rows*pitch
	if g.nodes != nil {
		height = max(height, title+g.nodes.height()+margin)
	}
	return height
}

func (b box) height() int { return max(boxHeight, (len(b.lines)+1)*lineHeight) }

// group draws a cluster and its nodes.
func (p *drawing) group(g group, x, y, nodes, height int) {
	p.Box(x, y, g.width(), height, "group")
	p.Text(x+margin, y+lineHeight+4, "title", g.title, 2*boxRunes)
	if g.nodes != nil {
		p.later(*g.nodes, nodes, y+title)
	}
}

// column draws gateways below each other.
func (p *drawing) column(boxes []box, x, y int) {
	for i, b := range boxes {
		p.at[b.id] = [2]int{x, y + i*pitch}
		p.later(b, x, y+i*pitch)
	}
}

func (p *drawing) later(b box, x, y int) {
	p.late = append(p.late, func() {
		p.Box(x, y, boxWidth, b.height(), "box "+plain(string(b.state)))
		for i, line := range b.lines {
			class := "small"
			if i == 0 {
				class = ""
			}
			p.Text(x+10, y+(i+1)*lineHeight+2, class, line, boxRunes)
		}
	})
}

// tunnels draws lines between gateways. Where each label stands depends on the far end, so that those of lines which cross do not.
func (p *drawing) tunnels(edges []edge, most int) {
	var labels []func()
	for _, e := range edges {
		from, to := p.at[e.from], p.at[e.to]
		if from[0] > to[0] {
			from, to = to, from
		}
		x1, y1, x2, y2 := from[0]+boxWidth, from[1]+boxHeight/2, to[0], to[1]+boxHeight/2
		p.Line(x1, y1, x2, y2, "line "+plain(string(e.state)), e.title)
		row := 0 // of the far end among the gateways of its cluster
		for _, other := range edges {
			if other.from == e.from && p.at[other.to][1] < p.at[e.to][1] {
				row++
			}
		}
		lx := x1 + row*(x2-x1)/most + margin*3/2
		labels = append(labels, func() {
			wide := min(len(e.label), labelRunes) * labelWidth / (labelRunes + 3)
			y := y1 + (y2-y1)*(lx+wide/2-x1)/(x2-x1)
			p.Box(lx-4, y-lineHeight/2, wide+8, lineHeight, "label") // the line ends before the label and goes on behind it
			p.Text(lx, y+4, "small", e.label, labelRunes)
		})
	}
	p.late = append(labels, p.late...)
}

// SVG is the picture as a file.
func (g Graph) SVG() string { return g.Picture().String() }

// HTML is a page with the picture and the tree.
func (g Graph) HTML() string { return g.Picture().Page("Peerings", g.Text(nil)) }
