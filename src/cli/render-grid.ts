import type { LayerName } from '../events/index.ts';
import type { InspectedPrompt } from '../troupe.ts';
import { cutOff, isPainted, number, paint, printable, type Style, table } from './output.ts';

/** A mark for each layer where there are no colours: large what is cached, small what is new. */
const LAYERS: Record<LayerName, { style: Style; letter: string }> = {
  rules: { style: 'magenta', letter: 'R' },
  persona: { style: 'blue', letter: 'P' },
  tools: { style: 'cyan', letter: 'T' },
  environment: { style: 'green', letter: 'E' },
  summary: { style: 'yellow', letter: 'S' },
  history: { style: 'white', letter: 'H' },
  missed: { style: 'yellowBright', letter: 'M' },
  trigger: { style: 'redBright', letter: 'N' },
  live: { style: 'greenBright', letter: 'L' },
  note: { style: 'cyanBright', letter: 'C' },
};
const RESERVED = { name: 'reserved', style: 'dim', mark: '▒' } as const;
const FREE = { name: 'free', style: 'dim', mark: '·' } as const;

/** Each cell is half a per cent of the window. */
const COLUMNS = 20;
const CELLS = 200;
const HASH_CHARS = 10;
const SOURCE_CHARS = 23;

/** A stretch of the window. */
interface Slice {
  name: string;
  style: Style;
  mark: string;
  tokens: number;
}

/** The window in cells: the layers in the order in which they are sent, each split where the cached part ends. */
export function renderGrid(prompt: InspectedPrompt): string {
  const slices = slicesOf(prompt).filter(({ tokens }) => tokens > 0);
  const cells = widthsOf(slices).flatMap((width, index) => {
    const slice = slices[index];
    return slice ? Array.from({ length: width }, () => paint(slice.style, slice.mark)) : [];
  });
  const rows = Math.ceil(cells.length / COLUMNS);
  return Array.from({ length: rows }, (_, row) =>
    cells.slice(row * COLUMNS, (row + 1) * COLUMNS).join(' '),
  ).join('\n');
}

/** At least one cell for whatever is there at all; the largest gives it. */
function widthsOf(slices: readonly Slice[]): number[] {
  const total = slices.reduce((sum, { tokens }) => sum + tokens, 0);
  const found = slices.map(({ tokens }) => Math.max(1, Math.round((tokens / total) * CELLS)));
  const widest = found.indexOf(Math.max(...found));
  const excess = found.reduce((sum, width) => sum + width, 0) - CELLS;
  return found.map((width, index) => (index === widest ? width - excess : width));
}

function slicesOf({ layers, tokens, cached }: InspectedPrompt): Slice[] {
  const scale = scaleOf(tokens);
  let left = cached.tokens;
  const sent = layers.flatMap(({ name, tokens: size }) => {
    const known = Math.min(size, left);
    left -= known;
    const { style } = LAYERS[name];
    return [
      { name, style, mark: markOf(name, true), tokens: known * scale },
      { name, style, mark: markOf(name, false), tokens: (size - known) * scale },
    ];
  });
  return [...sent, { ...RESERVED, tokens: tokens.reserved }, { ...FREE, tokens: Math.max(0, tokens.free) }];
}

/** From tokens as they were counted to what the provider will count. */
function scaleOf({ total, estimate }: InspectedPrompt['tokens']): number {
  return total === 0 ? 1 : estimate / total;
}

function markOf(name: LayerName, isCached: boolean): string {
  if (isPainted()) return isCached ? '■' : '□';
  const { letter } = LAYERS[name];
  return isCached ? letter : letter.toLowerCase();
}

/** Which marks mean cached, in words. */
export function cachedMark(): string {
  return isPainted() ? '■' : 'capital letters';
}

export function renderLayers({ layers, tokens, cached }: InspectedPrompt): string {
  const scale = scaleOf(tokens);
  const share = (size: number) => `${((size / tokens.window) * 100).toFixed(1)} %`;
  let before = 0;
  const rows = layers.map(({ name, tokens: size, stability, hash, source }) => {
    const isCached = cached.messages > 0 && before + size <= cached.tokens;
    const mark = paint(LAYERS[name].style, markOf(name, isCached));
    before += size;
    return [
      `${mark} ${name}`,
      number(size),
      share(size * scale),
      stability,
      hash.slice(0, HASH_CHARS),
      cutOff(printable(source), SOURCE_CHARS),
    ];
  });
  const rest = [
    { ...RESERVED, tokens: tokens.reserved },
    { ...FREE, tokens: Math.max(0, tokens.free) },
  ].map(({ name, style, mark, tokens: size }) => [
    `${paint(style, mark)} ${name}`,
    number(size),
    share(size),
    '',
    '',
    '',
  ]);
  const heads = ['  layer', 'tokens', 'window', 'stability', 'hash', 'source'].map((head) =>
    paint('dim', head),
  );
  return table([heads, ...rows, ...rest], [1, 2]);
}
