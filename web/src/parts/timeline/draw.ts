import type { ArrowLine } from '../../state/timeline/arrows.ts';
import { type Box, labelIn, type Layout, type Mark, type Target } from '../../state/timeline/layout.ts';
import { BAR_PX } from '../../state/timeline/rows.ts';
import type { Gap } from '../../state/timeline/scale.ts';
import { duration } from '../../shared/format.ts';
import type { Colours } from './colours.ts';

export interface Picture {
  layout: Layout;
  width: number;
  height: number;
  top: number;
  /** Position of the moment shown; null when live. */
  moment: number | null;
  /** Whether the target is selected, under the pointer, or has the keyboard focus. */
  isChosen: (target: Target) => boolean;
  isHot: (target: Target) => boolean;
  event: number | null;
}

export const AXIS_PX = 36;
const CHAR_PX = 6.1;
const LABEL_FROM_PX = 26;

export function drawTimeline(to: CanvasRenderingContext2D, picture: Picture, colours: Colours): void {
  const { layout, width, height } = picture;
  to.clearRect(0, 0, width, height);
  to.font = `11px ${colours.font}`;
  to.textBaseline = 'middle';
  to.save();
  to.translate(0, AXIS_PX);
  to.beginPath();
  to.rect(0, 0, width, height - AXIS_PX);
  to.clip();
  drawGround(to, picture, colours);
  for (const arrow of layout.arrows) drawArrow(to, arrow, colours);
  for (const box of layout.boxes) drawBox(to, box, picture, colours);
  for (const mark of layout.marks) drawMark(to, mark, picture, colours);
  if (picture.moment !== null) line(to, [picture.moment, 0, picture.moment, height], colours.accent, 2);
  to.restore();
  drawAxis(to, picture, colours);
}

type Line = readonly [number, number, number, number];

function line(to: CanvasRenderingContext2D, [x1, y1, x2, y2]: Line, colour: string, width = 1): void {
  to.strokeStyle = colour;
  to.lineWidth = width;
  to.beginPath();
  to.moveTo(x1, y1);
  to.lineTo(x2, y2);
  to.stroke();
}

/** Draws the lines of lanes and times, and gaps as bands across all lanes. */
function drawGround(
  to: CanvasRenderingContext2D,
  { layout, width, height, top }: Picture,
  colours: Colours,
): void {
  for (const { x } of layout.ticks) line(to, [crisp(x), 0, crisp(x), height], colours.line);
  for (const gap of layout.gaps) drawGapBand(to, gap, height, colours);
  for (const { y, height: lane } of layout.lanes) {
    const end = crisp(y + lane - top);
    if (end > 0 && end < height) line(to, [0, end, width, end], colours.line);
  }
}

function drawGapBand(
  to: CanvasRenderingContext2D,
  { x, width }: Gap,
  height: number,
  colours: Colours,
): void {
  to.fillStyle = colours.panel;
  to.fillRect(x, 0, width, height);
  to.save();
  to.beginPath();
  to.rect(x, 0, width, height);
  to.clip();
  to.setLineDash([2, 4]);
  const middle = crisp(x + width / 2);
  line(to, [middle, 0, middle, height], colours.strong);
  to.restore();
}

function crisp(at: number): number {
  return Math.round(at) + 0.5;
}

function drawBox(to: CanvasRenderingContext2D, box: Box, picture: Picture, colours: Colours): void {
  const { x, y, width, height, tone, density, target, isFailed } = box;
  if (tone === 'queued' || tone === 'wait') return drawWait(to, box, colours);
  to.globalAlpha = density;
  to.fillStyle = (density < 1 ? colours.edge : colours.fill)[tone];
  shape(to, box);
  to.fill();
  to.globalAlpha = 1;
  if (isFailed && width < OUTLINED_PX) {
    to.fillStyle = colours.failed;
    to.fillRect(x, y, Math.max(2, width), height);
  } else if (isTurn(tone) && width >= OUTLINED_PX) {
    drawOutline(to, box, target !== null && picture.isHot(target) ? colours.text : colours.edge[tone]);
  }
  if (isFailed && tone === 'tool') line(to, [x, y, x + width, y + height], colours.failed, 1.5);
  if (target?.kind === 'turn' && picture.isChosen(target)) drawChosen(to, box, colours);
  drawLabel(to, box, colours);
}

function drawChosen(to: CanvasRenderingContext2D, { x, y, width, height }: Box, { accent }: Colours): void {
  to.strokeStyle = accent;
  to.lineWidth = 2;
  shape(to, { x: x - 1, y: y - 1, width: width + 2, height: height + 2 });
  to.stroke();
}

/** Narrower boxes have no outline. */
const OUTLINED_PX = 5;

function drawOutline(to: CanvasRenderingContext2D, { x, y, width, height, tone }: Box, colour: string): void {
  to.strokeStyle = colour;
  to.lineWidth = 1;
  if (tone === 'aborted' || tone === 'thread') to.setLineDash([3, 2]);
  shape(to, { x: x + 0.5, y: y + 0.5, width: width - 1, height: height - 1 });
  to.stroke();
  to.setLineDash([]);
}

const TURNS: ReadonlySet<string> = new Set(['done', 'running', 'failed', 'aborted', 'thread']);

function isTurn(tone: string): boolean {
  return TURNS.has(tone);
}

function shape(
  to: CanvasRenderingContext2D,
  { x, y, width, height }: Pick<Box, 'x' | 'y' | 'width' | 'height'>,
): void {
  to.beginPath();
  const radius = width > 6 && height > 6 ? 3 : 0;
  to.roundRect(x, y, Math.max(0.5, width), height, radius);
}

/** Draws waiting as a line with an end: thin before a turn; thicker for a person, in the colour for needed attention. */
function drawWait(to: CanvasRenderingContext2D, { x, y, width, height, tone }: Box, colours: Colours): void {
  const middle = crisp(y + height / 2);
  const colour = colours.fill[tone];
  line(to, [x, middle, x + width, middle], colour, tone === 'wait' ? 2 : 1);
  line(to, [crisp(x), middle - 3, crisp(x), middle + 3], colour);
}

/** A label whose start is out of view moves to the visible edge. */
function drawLabel(
  to: CanvasRenderingContext2D,
  { x, y, width, height, label, tone }: Box,
  colours: Colours,
): void {
  const start = Math.max(0, x) + 5;
  const room = x + width - start - 4;
  if (label === '' || height < 10 || room < LABEL_FROM_PX - 9) return;
  const text = labelIn(label, Math.floor(room / CHAR_PX));
  to.fillStyle = isTurn(tone) || tone === 'first_token' ? colours.text : colours.page;
  to.fillText(text, start, y + height / 2 + 0.5);
}

function drawMark(
  to: CanvasRenderingContext2D,
  { x, y, kind, seq }: Mark,
  { event }: Picture,
  colours: Colours,
): void {
  to.beginPath();
  if (kind === 'problem') {
    to.strokeStyle = colours.failed;
    to.lineWidth = 1.8;
    to.moveTo(x - 3, y - 3);
    to.lineTo(x + 3, y + 3);
    to.moveTo(x + 3, y - 3);
    to.lineTo(x - 3, y + 3);
    to.stroke();
  } else {
    to.fillStyle =
      kind === 'compaction' ? colours.compaction : kind === 'task' ? colours.task : colours.quiet;
    if (kind === 'talk') to.arc(x, y, 2.3, 0, 7);
    else if (kind === 'task') to.rect(x - 3, y - 3, 6, 6);
    else to.roundRect(x - 4, y - 1.5, 8, 3, 1);
    to.fill();
  }
  if (seq !== event) return;
  to.beginPath();
  to.strokeStyle = colours.accent;
  to.lineWidth = 2;
  to.arc(x, y, 5, 0, 7);
  to.stroke();
}

const HEAD_PX = 4;

function drawArrow(
  to: CanvasRenderingContext2D,
  { x, from, to: end, kind }: ArrowLine,
  colours: Colours,
): void {
  const down = end > from ? 1 : -1;
  const tip = end - (down * BAR_PX) / 2;
  const colour = kind === 'message' ? colours.strong : colours.accent;
  if (kind === 'delegation') to.setLineDash([4, 2]);
  line(to, [crisp(x), from, crisp(x), tip], colour, kind === 'message' ? 1 : 1.4);
  to.setLineDash([]);
  to.beginPath();
  to.strokeStyle = colour;
  to.moveTo(crisp(x) - HEAD_PX + 1, tip - down * HEAD_PX);
  to.lineTo(crisp(x), tip);
  to.lineTo(crisp(x) + HEAD_PX - 1, tip - down * HEAD_PX);
  to.stroke();
}

const GAP_LABEL_PX = 34;
const DAY_Y = 10;
const TIME_Y = 25;

/** Draws dates above times, and the length of each gap on its band. */
function drawAxis(to: CanvasRenderingContext2D, { layout, width }: Picture, colours: Colours): void {
  to.fillStyle = colours.page;
  to.fillRect(0, 0, width, AXIS_PX);
  line(to, [0, AXIS_PX - 0.5, width, AXIS_PX - 0.5], colours.line);
  for (const { x, label, day } of layout.ticks) {
    line(to, [crisp(x), AXIS_PX - 5, crisp(x), AXIS_PX], colours.strong);
    to.fillStyle = colours.quiet;
    to.fillText(label, x + 4, TIME_Y);
    if (day === null) continue;
    to.fillStyle = colours.text;
    to.font = `600 11px ${colours.font}`;
    to.fillText(day, x + 4, DAY_Y);
    to.font = `11px ${colours.font}`;
  }
  for (const gap of layout.gaps) drawGapLabel(to, gap, colours);
}

function drawGapLabel(
  to: CanvasRenderingContext2D,
  { x, width, from, to: end }: Gap,
  colours: Colours,
): void {
  to.fillStyle = colours.panel;
  to.fillRect(x, 0, width, AXIS_PX - 1);
  const y = AXIS_PX - 4;
  to.beginPath();
  to.strokeStyle = colours.strong;
  to.lineWidth = 1;
  const middle = x + width / 2;
  const reach = Math.min(8, width / 2);
  to.moveTo(middle - reach, y);
  to.lineTo(middle - reach / 4, y);
  to.lineTo(middle, y - 4);
  to.lineTo(middle + reach / 4, y + 3);
  to.lineTo(middle + reach / 2, y);
  to.lineTo(middle + reach, y);
  to.stroke();
  if (width < GAP_LABEL_PX) return;
  to.fillStyle = colours.quiet;
  to.textAlign = 'center';
  to.fillText(duration(end - from), middle, DAY_Y + 4, width - 4);
  to.textAlign = 'start';
}
