import { TroupeError } from '../../base/errors.ts';
import { parseTurnId, type LayerName, type PromptMessage } from '../../events/index.ts';
import type {
  CostOptions,
  CostReport,
  PromptDiff,
  InspectedPrompt,
  SentPrompt,
} from '../../library/troupe.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import {
  count,
  number,
  paint,
  paragraph,
  print,
  printable,
  printJson,
  table,
  cutOff,
  screenWidth,
  type Style,
  isPainted,
} from '../render/output.ts';
import { ranges } from '../../library/projection/words.ts';

interface ContextOptions extends ClientOptions {
  turn?: string;
  step?: number;
  against?: string;
  cacheCost?: boolean;
  vendor?: NonNullable<CostOptions['vendor']>;
}

/** An agent in a conversation, as named on the command line. */
interface Named {
  conversation: string;
  agent: string;
}

export async function context(conversation: string, agent: string, options: ContextOptions): Promise<void> {
  const named = { conversation, agent };
  refuseContradictions(options);
  const turn = options.turn === undefined ? undefined : turnOf(options.turn, named, 'turn');
  const against = options.against === undefined ? undefined : turnOf(options.against, named, 'against');
  const needsAgents = turn === undefined || options.cacheCost;
  const client = await connect(options, { needs: needsAgents ? 'agents' : 'names' });
  try {
    if (options.cacheCost) await showCost(client, named, options);
    else if (against !== undefined) {
      const { step } = options;
      const found = await client.diff(against, turn ?? 'next', step === undefined ? {} : { stepB: step });
      show(found, renderDiff, options);
    } else if (turn !== undefined) show(await client.promptOf(turn, options.step), renderPrompt, options);
    else show(await client.prompt(conversation, agent), renderPrompt, options);
  } catch (error) {
    throw withTurns(error, conversation);
  } finally {
    await client.close();
  }
}

async function showCost(
  client: Client,
  { conversation, agent }: Named,
  options: ContextOptions,
): Promise<void> {
  const progress = createProgress(`rendering the prompts of @${agent.replace(/^@/, '')} again`);
  try {
    const { vendor } = options;
    show(
      await client.cacheCost(conversation, agent, { vendor, onTurn: progress.update }),
      renderCost,
      options,
    );
  } finally {
    progress.end();
  }
}

function show<T>(found: T, render: (found: T) => string, { json }: ContextOptions): void {
  if (json) printJson(found);
  else print(render(found));
}

function refuseContradictions({ turn, step, against, cacheCost }: ContextOptions): void {
  if (cacheCost && (turn !== undefined || against !== undefined)) {
    throw invalid('cacheCost', '--cache-cost covers all turns: leave out --turn and --against');
  }
  if (step !== undefined && turn === undefined) {
    throw invalid('turn', '--step selects a step of a past turn: name the turn with --turn');
  }
}

/** The id of a turn. A bare number counts the agent's turns in the conversation. Throws for a turn of another agent. */
function turnOf(text: string, { conversation, agent }: Named, option: string): string {
  const name = agent.replace(/^@/, '');
  if (/^\d+$/.test(text)) return `${conversation}:${name}:${text}`;
  const parts = parseTurnId(text);
  // The agent may be named by a pubkey, which only the troupe can resolve.
  const isOther = parts?.agent !== name && !/^[0-9a-f]{64}$/.test(name);
  if (!parts || (parts.conversation === conversation && !isOther)) return text;
  const whose = `@${parts.agent} in ${parts.conversation}`;
  throw invalid(
    option,
    `turn ${text} belongs to ${whose}: name a turn of @${name} in ${conversation}, such as --${option} 1, or ask for ${whose}`,
  );
}

/** Adds the command that lists turns to the error. */
function withTurns(error: unknown, conversation: string): unknown {
  if (!(error instanceof TroupeError) || error.code !== 'turn_unknown') return error;
  const message = `${error.message}; "troupe ls ${conversation}" shows the last turn of each agent`;
  return new TroupeError(error.code, message, error.data, { cause: error });
}

function invalid(path: string, message: string): TroupeError {
  return new TroupeError('event_invalid', message, { path });
}

/** Reports the progress of work that takes longer than a second, on stderr; only once if stderr is not a terminal. */
interface Progress {
  update: (what: string) => void;
  end: () => void;
}

const PATIENCE_MS = 1_000;
const EVERY_MS = 200;

function createProgress(task: string): Progress {
  const { stderr } = process;
  let next = Date.now() + PATIENCE_MS;
  let told = 0;

  function update(what: string): void {
    if (Date.now() < next || (told > 0 && !stderr.isTTY)) return;
    next = Date.now() + EVERY_MS;
    told += 1;
    const line = what === '' ? `${task}…` : `${task}: ${what}`;
    stderr.write(stderr.isTTY ? `\r\u001b[K${line}` : `${line}\n`);
  }

  const timer = setTimeout(() => update(''), PATIENCE_MS);
  return {
    update,
    end() {
      clearTimeout(timer);
      if (told > 0 && stderr.isTTY) stderr.write('\r\u001b[K');
    },
  };
}

const CAUSE_INDENT = 4;

/** The cost of an agent's prompts as text, call by call. */
function renderCost(report: CostReport): string {
  const { agent, conversation, vendor, model, rows } = report;
  const heading = paint(
    'bold',
    `@${agent} in ${conversation}: prompts in the cache of ${vendor} (${printable(model)})`,
  );
  if (rows.length === 0) return `${heading}\nno finished turn has a recorded prompt`;
  return [heading, renderRows(report), renderTotal(report)].join('\n\n');
}

type Row = CostReport['rows'][number];

/** Each row is followed by the reasons why it did not cost less. */
function renderRows({ rows }: CostReport): string {
  const heads = ['turn.step', 'input', 'read', 'written', 'fresh', 'cost', 'reported read/written'];
  const cells = rows.map(({ turn, step, input, read, written, fresh, cost, reported }) => [
    `${turn.slice(turn.lastIndexOf(':') + 1)}.${step}`,
    ...[input, read, written, fresh, Math.round(cost)].map(number),
    reported ? `${number(reported.cacheRead)}/${number(reported.cacheWrite)}` : '-',
  ]);
  const [head, ...lines] = table([heads, ...cells], [1, 2, 3, 4, 5, 6]).split('\n');
  const explained = lines.flatMap((line, index) => {
    const row = rows[index];
    return row
      ? [
          line,
          ...keyValueOf(row).map((note) => paint('yellow', paragraph('', note, { indent: CAUSE_INDENT }))),
        ]
      : [];
  });
  return [paint('dim', head ?? ''), ...explained].join('\n');
}

function keyValueOf({ broke, coldAfterMs, verified }: Row): string[] {
  return [
    ...(coldAfterMs === null ? [] : [`cold: nothing was sent for ${duration(coldAfterMs)}`]),
    ...(broke ? [`broke in ${broke.layer}${at(broke.message)}: ${printable(broke.cause)}`] : []),
    ...(verified ? [] : ['the log no longer reproduces the bytes that were sent']),
  ];
}

function at(message: number | null): string {
  return message === null ? '' : ` at message ${message}`;
}

function duration(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 120) return `${number(Math.round(minutes))} min`;
  return `${number(Math.round(minutes / 60))} h`;
}

function renderTotal({ rows, total, reported }: CostReport): string {
  const { input, read, written, fresh, output, cost, uncached, hitRate } = total;
  const saved = uncached === 0 ? 0 : 1 - cost / uncached;
  const lines = [
    paragraph(
      'total',
      `${number(input)} input tokens in ${count(rows.length, 'call')}: ${number(read)} read (${percent(hitRate)}), ` +
        `${number(written)} written, ${number(fresh)} fresh; ${number(output)} of output`,
    ),
    paragraph(
      'cost',
      `${number(Math.round(cost))} in fresh input tokens, output included; ` +
        `${number(Math.round(uncached))} without a cache (${percent(saved)} saved)`,
    ),
  ];
  if (reported) {
    lines.push(
      paragraph(
        'reported',
        `${number(reported.input)} input tokens: ${number(reported.cacheRead)} read ` +
          `(${percent(reported.input === 0 ? 0 : reported.cacheRead / reported.input)}), ${number(reported.cacheWrite)} written`,
      ),
    );
  }
  return lines.join('\n');
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** Limits of the printed text. `--json` prints everything. */
const MOST_MESSAGES = 5;
const MOST_LINES = 24;
const DIFF_WIDTH = 80;

const MARKS = { equal: ' ', changed: '~', added: '+', removed: '-' } as const;
const LINE_STYLES: Record<string, Style> = { '+': 'green', '-': 'red', '@': 'cyan' };

/** The differences between two prompts as text: layers, the cause of a cache break, the first messages that differ. */
function renderDiff(diff: PromptDiff): string {
  const { changes } = diff.messages;
  const more = changes.length - MOST_MESSAGES;
  return [
    renderSides(diff),
    renderLayerChanges(diff),
    ...changes.slice(0, MOST_MESSAGES).map(renderChange),
    ...(more > 0 ? [paint('dim', `… and ${count(more, 'more message')}; --json shows all of them`)] : []),
  ].join('\n\n');
}

function renderSides({ a, b, tokens, messages, broke }: PromptDiff): string {
  const cache = broke
    ? `broke in ${broke.layer}${broke.message === null ? '' : ` at message ${broke.message}`}: ${broke.cause}`
    : 'nothing broke: the second prompt begins with all of the first';
  const { shared, firstDifference } = messages;
  const same =
    firstDifference === null
      ? `all ${number(shared)} are the same`
      : `the first ${number(shared)} of ${number(a.count)} and ${number(b.count)} are the same`;
  return [
    paint('bold', `@${b.agent}: ${sideOf(a)} → ${sideOf(b)}`),
    paragraph('tokens', `${number(tokens.a)} → ${number(tokens.b)} (${signed(tokens.delta)})`),
    paragraph('messages', same),
    paint(broke ? 'yellow' : 'green', paragraph('cache', printable(cache))),
  ].join('\n');
}

function sideOf({ turn, step }: PromptDiff['a']): string {
  return turn === null ? 'next prompt' : `${turn}, step ${step}`;
}

function signed(value: number): string {
  return value > 0 ? `+${number(value)}` : number(value);
}

function renderLayerChanges({ layers }: PromptDiff): string {
  const heads = ['  layer', 'before', 'after', 'tokens', ''].map((head) => paint('dim', head));
  const present = layers.filter(({ change, tokens }) => change === 'changed' || tokens.a + tokens.b > 0);
  const rows = present.map(({ name, change, tokens }) =>
    [`${MARKS[change]} ${name}`, number(tokens.a), number(tokens.b), signed(tokens.delta), change].map(
      (cell) => (change === 'equal' ? paint('dim', cell) : cell),
    ),
  );
  return table([heads, ...rows], [1, 2, 3]);
}

function renderChange({ a, b, role, hunks }: PromptDiff['messages']['changes'][number]): string {
  const which = a === null ? `+ ${b}` : b === null ? `- ${a}` : a === b ? `~ ${a}` : `~ ${a} → ${b}`;
  const width = Math.min(screenWidth(), DIFF_WIDTH);
  const lines = hunks.flatMap((hunk) => [
    `@@ -${hunk.aStart},${hunk.aLines} +${hunk.bStart},${hunk.bLines} @@`,
    ...hunk.lines,
  ]);
  const more = lines.length - MOST_LINES;
  return [
    paint('bold', `── ${which} ${role} `.padEnd(width, '─')),
    ...lines
      .slice(0, MOST_LINES)
      .map((line) => paint(LINE_STYLES[line.charAt(0)] ?? 'reset', cutOff(printable(line), width))),
    ...(more > 0 ? [paint('dim', `… ${count(more, 'more line')}`)] : []),
  ].join('\n');
}

const ROLE_STYLE: Record<PromptMessage['role'], Style> = {
  system: 'magenta',
  user: 'cyan',
  assistant: 'green',
  tool: 'yellow',
};
const LEVEL_STYLE = { normal: 'green', warning: 'yellow', critical: 'red' } as const;
/** Most compactions shown, the newest ones. `--json` prints all. */
const MOST_CUTS = 5;
const WIDTH = 80;

/** A prompt as text: where its tokens go, why it looks as it does, then every message as the model reads it. */
function renderPrompt(prompt: InspectedPrompt | SentPrompt): string {
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
    cutOff(`${prompt.role}; ${settingsText(prompt.settings)}`, WIDTH),
    cutOff(triggersText(prompt.triggers), WIDTH),
  ];
  if ('verified' in prompt && !prompt.verified) {
    lines.push(
      prompt.erased
        ? 'Words of what was sent are erased; this is what is left of it.'
        : paint('red', 'The log no longer reproduces the bytes that were sent; this is what it renders now.'),
    );
  }
  return lines.join('\n');
}

function settingsText(settings: InspectedPrompt['settings']): string {
  if (!settings) return 'settings not known: the agent has another model now';
  const { maxOutputTokens, ...others } = settings;
  const given = Object.entries(others).map(([name, value]) => `, ${name} ${JSON.stringify(value)}`);
  return printable(`answers up to ${number(maxOutputTokens)} tokens${given.join('')}`);
}

function triggersText(triggers: InspectedPrompt['triggers']): string {
  if (triggers.length === 0) return 'answers nothing: no event waits for the agent';
  const named = triggers.map(({ seq, kind, author }) => `${kind} of ${author.name} (seq ${seq})`);
  return printable(`answers ${named.join(', ')}`);
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

/** Letters for the layers where there are no colours: upper case if cached, lower case if new. */
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

/** Cells per row. Each cell is half a per cent of the window. */
const COLUMNS = 20;
const CELLS = 200;
const HASH_CHARS = 10;
const SOURCE_CHARS = 23;

interface Slice {
  name: string;
  style: Style;
  mark: string;
  tokens: number;
}

/** The window in cells: the layers in the order in which they are sent. A layer that is partly cached is split. */
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

/** Explains the mark for cached tokens. */
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
