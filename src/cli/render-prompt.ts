import type { PromptMessage } from '../events/index.ts';
import type { InspectedPrompt, SentPrompt } from '../troupe.ts';
import { count, cutOff, number, paint, paragraph, printable, screenWidth, type Style } from './output.ts';
import { cachedMark, renderGrid, renderLayers } from './render-grid.ts';
import { ranges } from '../projection/words.ts';

const ROLE_STYLE: Record<PromptMessage['role'], Style> = {
  system: 'magenta',
  user: 'cyan',
  assistant: 'green',
  tool: 'yellow',
};
const LEVEL_STYLE = { normal: 'green', warning: 'yellow', critical: 'red' } as const;
/** The newest say most; `--json` has all. */
const MOST_CUTS = 5;
const WIDTH = 80;

/** A prompt for people: where its tokens go and why it is as it is, then every message as the model reads it. */
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
    lines.push(paint('red', 'The log does not give the bytes that were sent: this is what it gives now.'));
  }
  return lines.join('\n');
}

function renderFacts({ tokens, cached, compaction, cuts, messages }: InspectedPrompt): string {
  const { estimate, percent, level, calibrated } = tokens;
  const learnt = calibrated ? 'calibrated by what the provider reported' : 'not calibrated yet';
  const usage = `${number(estimate)} tokens estimated, ${percent} % of the room: ${level}, ${learnt}`;
  const known =
    cached.messages === 0
      ? 'nothing of it was sent before'
      : `${number(cached.tokens)} tokens in ${number(cached.messages)} of ${count(messages.length, 'message')} ` +
        `begin as the last prompt did (${cachedMark()})`;
  const due =
    compaction.left > 0
      ? `in ${number(compaction.left)} tokens, at ${number(compaction.at)}`
      : `due: ${number(compaction.at)} tokens are reached`;
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
