import type { PromptMessage, PromptRecord } from '../events/index.ts';
import { type Style, number, paint, printable, screenWidth, table } from './output.ts';

const LAYER_STYLE: Record<string, Style> = {
  rules: 'magenta',
  persona: 'blue',
  tools: 'cyan',
  environment: 'green',
  summary: 'yellow',
  history: 'white',
  missed: 'yellowBright',
  trigger: 'redBright',
  live: 'greenBright',
};
const ROLE_STYLE: Record<PromptMessage['role'], Style> = {
  system: 'magenta',
  user: 'cyan',
  assistant: 'green',
  tool: 'yellow',
};
const HASH_CHARS = 10;

/** A prompt for people: where its tokens go, then every message as the model reads it. */
export function renderPrompt(prompt: PromptRecord): string {
  return [
    renderHeading(prompt),
    renderBar(prompt),
    renderLayers(prompt),
    ...prompt.messages.map(renderMessage),
  ].join('\n\n');
}

function renderHeading(prompt: PromptRecord): string {
  const { agent, conversation, turn, step, tokens, provider, model, mode, cursor } = prompt;
  const which = turn === null ? 'next prompt' : `turn ${turn}, step ${step}`;
  const used = Math.round((tokens.total / tokens.window) * 100);
  return [
    paint('bold', `@${agent} in ${conversation}: ${which}`),
    `${provider} ${printable(model)}, ${mode}, ${number(tokens.total)} of ${number(tokens.window)} tokens (${used} %), ` +
      `cursor ${cursor.before ?? '-'} → ${cursor.after ?? '-'}`,
  ].join('\n');
}

interface Slice {
  name: string;
  tokens: number;
  style: Style;
  mark: string;
}

function slicesOf({ layers, tokens }: PromptRecord): Slice[] {
  return [
    ...layers.map(({ name, tokens: size }) => ({
      name,
      tokens: size,
      style: LAYER_STYLE[name] ?? 'white',
      mark: '█',
    })),
    { name: 'reserved', tokens: tokens.reserved, style: 'dim', mark: '▒' },
    { name: 'free', tokens: Math.max(0, tokens.free), style: 'dim', mark: '·' },
  ];
}

/** One cell for whatever is there at all, however small. */
function renderBar(prompt: PromptRecord): string {
  const cells = Math.min(screenWidth(), 80);
  const slices = slicesOf(prompt).filter(({ tokens }) => tokens > 0);
  const total = slices.reduce((sum, { tokens }) => sum + tokens, 0);
  const widths = slices.map(({ tokens }) => Math.max(1, Math.round((tokens / total) * cells)));
  const widest = widths.indexOf(Math.max(...widths));
  const excess = widths.reduce((sum, width) => sum + width, 0) - cells;
  return slices
    .map(({ style, mark }, index) => {
      const width = (widths[index] ?? 0) - (index === widest ? excess : 0);
      return paint(style, mark.repeat(Math.max(1, width)));
    })
    .join('');
}

function renderLayers(prompt: PromptRecord): string {
  const details = new Map(prompt.layers.map((layer) => [layer.name as string, layer]));
  const rows = slicesOf(prompt).map(({ name, tokens, style, mark }) => {
    const layer = details.get(name);
    const cells = [`${paint(style, mark)} ${name}`, number(tokens), layer?.stability ?? ''];
    return [...cells, layer?.hash.slice(0, HASH_CHARS) ?? '', printable(layer?.source ?? '')];
  });
  const heads = ['  layer', 'tokens', 'stability', 'hash', 'source'].map((head) => paint('dim', head));
  return table([heads, ...rows], [1]);
}

function renderMessage(message: PromptMessage, index: number): string {
  const { role, content, seqs } = message;
  const title = `── ${index} ${role}${about(message)}${seqs.length > 0 ? ` · seq ${ranges(seqs)}` : ''} `;
  const lines = [paint(ROLE_STYLE[role], title.padEnd(Math.min(screenWidth(), 80), '─'))];
  if (content !== '') lines.push(printable(content));
  if (message.role === 'assistant') {
    for (const { name, args } of message.calls ?? []) lines.push(printable(`→ ${name} ${args}`));
  }
  return lines.join('\n');
}

function about(message: PromptMessage): string {
  if (message.role !== 'tool') return '';
  return ` ${printable(message.name)}${message.failed ? ' (failed)' : ''}`;
}

/** 1, 2, 3, 7 as `1–3, 7`. */
export function ranges(seqs: readonly number[]): string {
  const parts: { from: number; to: number }[] = [];
  for (const seq of seqs) {
    const last = parts.at(-1);
    if (last && seq === last.to + 1) last.to = seq;
    else parts.push({ from: seq, to: seq });
  }
  return parts.map(({ from, to }) => (from === to ? `${from}` : `${from}–${to}`)).join(', ');
}
