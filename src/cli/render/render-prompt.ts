import type { LayerName, PromptMessage } from '../../events/index.ts';
import type { InspectedPrompt, SentPrompt } from '../../library/troupe.ts';
import {
  count,
  cutOff,
  isPainted,
  number,
  paint,
  paragraph,
  printable,
  screenWidth,
  type Style,
  table,
} from './output.ts';
import { ranges } from '../../library/projection/words.ts';

const ROLE_STYLE: Record<PromptMessage['role'], Style> = {
  system: 'magenta',
  user: 'cyan',
  assistant: 'green',
  tool: 'yellow',
};
const LEVEL_STYLE = { normal: 'green', warning: 'yellow', critical: 'red' } as const;
/** Number of newest cuts shown. `--json` has all. */
const MOST_CUTS = 5;
const WIDTH = 80;

/** A prompt as text: where its tokens go, why it is as it is, then every message as the model reads it. */
export function renderPrompt(prompt: InspectedPrompt | SentPrompt): string {
  return [
    renderHeading(prompt),
    renderGrid(prompt),
    renderLayers(prompt),
    renderFacts(prompt),
    ...prompt.messages.map(renderMessage),
  ].join('\n\n');
}

function renderHeading(prompt: InspectedPrompt | SentPrompt): string {
  const { agent, conversation, turn, step, tokens, provider, model, mode, cursor } = prompt;
  const which = turn === null ? 'next prompt' : `turn ${turn}, step ${step}`;
  const used = Math.round((tokens.total / tokens.window) * 100);
  const lines = [
    paint('bold', `@${agent} in ${conversation}: ${which}`),
    cutOff(
      `${provider} ${printable(model)}, ${mode}, cursor ${cursor.before ?? '-'} → ${cursor.after ?? '-'}`,
      WIDTH,
    ),
    `${number(tokens.total)} of ${number(tokens.window)} tokens (${used} %) in ${count(prompt.messages.length, 'message')}`,
  ];
  if ('verified' in prompt && !prompt.verified) {
    lines.push(
      paint('red', 'The log no longer reproduces the bytes that were sent; this is what it renders now.'),
    );
  }
  return lines.join('\n');
}

function renderFacts({ tokens, cached, compaction, cuts, messages }: InspectedPrompt): string {
  const { estimate, percent, level, calibrated } = tokens;
  const learnt = calibrated ? 'calibrated with reports of the provider' : 'not calibrated yet';
  const usage = `${number(estimate)} tokens estimated, ${percent} % of the room: ${level}, ${learnt}`;
  const known =
    cached.messages === 0
      ? 'nothing of this prompt was sent before'
      : `${number(cached.tokens)} tokens in ${number(cached.messages)} of ${count(messages.length, 'message')} ` +
        `match the last prompt (${cachedMark()})`;
  const due =
    compaction.left > 0
      ? `in ${number(compaction.left)} tokens, at ${number(compaction.at)}`
      : `due: the prompt has reached ${number(compaction.at)} tokens`;
  return [
    paint(LEVEL_STYLE[level], paragraph('usage', usage)),
    paragraph('cached', known),
    paragraph('compacts', due),
    ...(cuts.length > MOST_CUTS ? [paragraph('cut', `${number(cuts.length - MOST_CUTS)} before these`)] : []),
    ...cuts.slice(-MOST_CUTS).map((cut) => paragraph('cut', describeCut(cut))),
  ].join('\n');
}

type CutDetail = InspectedPrompt['cuts'][number];

function describeCut(cut: CutDetail): string {
  const { reason, tokens, by, strategy } = cut;
  const author = by === undefined ? '' : `, by @${by} with ${strategy}`;
  return `${whatWasCut(cut)}: ${reason}, ${number(tokens.before)} → ${number(tokens.after)} tokens${author}`;
}

function whatWasCut({
  kind,
  event,
  compaction,
  upTo = 0,
  results = 0,
  trimmed = 0,
  steps = 0,
}: CutDetail): string {
  if (kind === 'prune') return `prune: ${count(results, 'tool output')} (${event})`;
  const beside = [
    ...(steps > 0 ? [`${count(steps, 'step')} of its turn as text`] : []),
    ...(trimmed > 0 ? [`${count(trimmed, 'text')} shortened`] : []),
    ...(results > 0 ? [count(results, 'tool output')] : []),
  ];
  if (!compaction) return `trim: ${beside.join(', ')} (${event})`;
  return [`${compaction} covers events 1–${number(upTo)}`, ...beside].join(', ');
}

function renderMessage(message: PromptMessage, index: number): string {
  const { role, content, seqs } = message;
  const title = `── ${index} ${role}${about(message)}${seqs.length > 0 ? ` · seq ${ranges(seqs)}` : ''} `;
  const lines = [paint(ROLE_STYLE[role], title.padEnd(Math.min(screenWidth(), WIDTH), '─'))];
  if (content !== '') lines.push(printable(content));
  if (message.role === 'assistant') {
    for (const { name, args } of message.calls ?? []) lines.push(printable(`→ ${name} ${args}`));
  }
  return lines.join('\n');
}

function about(message: PromptMessage): string {
  if (message.role === 'user' && message.images) return `, ${count(message.images.length, 'image')}`;
  if (message.role !== 'tool') return '';
  return ` ${printable(message.name)}${message.failed ? ' (failed)' : ''}`;
}

/** Letters of the layers, without colours: capital where cached, small where new. */
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

/** Part of the context window. */
interface Slice {
  name: string;
  style: Style;
  mark: string;
  tokens: number;
}

/** The window in cells: the layers in the order in which they are sent, each split where the cached part ends. */
function renderGrid(prompt: InspectedPrompt): string {
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

/** Widths in cells. Every slice has at least one; the largest slice gives up the excess. */
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

/** Factor from locally counted tokens to the provider's count. */
function scaleOf({ total, estimate }: InspectedPrompt['tokens']): number {
  return total === 0 ? 1 : estimate / total;
}

function markOf(name: LayerName, isCached: boolean): string {
  if (isPainted()) return isCached ? '■' : '□';
  const { letter } = LAYERS[name];
  return isCached ? letter : letter.toLowerCase();
}

/** Describes the mark of cached tokens. */
function cachedMark(): string {
  return isPainted() ? '■' : 'capital letters';
}

function renderLayers({ layers, tokens, cached }: InspectedPrompt): string {
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
