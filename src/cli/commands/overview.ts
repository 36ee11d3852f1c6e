import { NEED } from '../../library/projection/needs.ts';
import type { StandingState } from '../../library/projection/standing.ts';
import type { ConversationKind } from '../../events/index.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { clip, number, paint, print, printJson, table, screenWidth } from '../render/output.ts';
import { systemClock } from '../../base/clock.ts';
import { ageWords } from '../../library/inspect/stuck.ts';
import type {
  ConversationCost,
  CostSum,
  ProviderLoad,
  QueueReport,
  StuckLine,
  StuckReport,
  TurnTrace,
} from '../../library/troupe.ts';
import { onInterrupt } from '../process/terminal.ts';
import { describeEvent } from '../render/reply-printer.ts';

interface LsOptions extends ClientOptions {
  kind?: ConversationKind['kind'];
}

export async function ls(conversation: string | undefined, options: LsOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    if (conversation === undefined) await listConversations(client, options);
    else await listActors(client, conversation, options);
  } finally {
    await client.close();
  }
}

const STATE_WORDS: Record<StandingState, string> = {
  failed: 'failed',
  asks: 'needs you',
  running: 'running',
  waiting: 'waiting',
  quiet: 'quiet',
};

async function listConversations(client: Client, { json, kind }: LsOptions): Promise<void> {
  const { lines: conversations, counts, unread, next } = await client.inbox({ kind });
  if (json) return printJson({ conversations, counts, unread });
  if (conversations.length === 0 && unread === 0) return print(paint('dim', 'no conversations yet'));
  const hasThreads = conversations.some(({ parent }) => parent !== null && parent !== undefined);
  const place = hasThreads ? ['thread of'] : [];
  const heads = ['conversation', 'state', 'events', 'last', ...place, 'about'].map((head) =>
    paint('dim', head),
  );
  const rows = conversations.map(({ id, state, head, at, parent, about, failure, asks }) => [
    id,
    STATE_WORDS[state],
    number(head),
    timeText(at),
    ...place.map(() => parent ?? ''),
    clip(failure?.message || asks?.text || about?.text || '', 60),
  ]);
  print(table([heads, ...rows], [2]));
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (next !== null)
    print(paint('dim', `${number(conversations.length)} of ${number(all)}, the most urgent first`));
  if (unread > 0) print(paint('dim', `counting: ${number(unread)} left`));
}

async function listActors(client: Client, conversation: string, { json }: ClientOptions): Promise<void> {
  // Agents that need attention come first.
  const actors = (await client.actors(conversation)).toSorted(
    (a, b) => NEED.indexOf(a.status) - NEED.indexOf(b.status),
  );
  if (json) return printJson({ actors });
  if (actors.length === 0) return print(paint('dim', 'no agent has taken part yet'));
  const heads = ['agent', 'status', 'state', 'processed', 'turn', 'session', ''].map((head) =>
    paint('dim', head),
  );
  const rows = actors.map(
    ({ agent, status, state, lastProcessedIndex, turn, lastTurn, session, cursor, problem }) => [
      `@${agent}`,
      status,
      state,
      number(lastProcessedIndex),
      turn ?? lastTurn ?? '-',
      session ? clip(`${session.provider} ${session.id} to ${cursor ?? 0}`, 40) : '-',
      clip(problem ?? '', 80),
    ],
  );
  print(table([heads, ...rows], [3]));
}

function timeText(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}

interface QueuesOptions extends ClientOptions {
  watch?: boolean;
}

const WATCH_MS = 1_000;

/** Prints who runs, who waits and for how long. With `--watch`, prints a line of numbers every second until Ctrl-C. */
export async function queues({ watch, ...options }: QueuesOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  const stop = new AbortController();
  const dispose = watch ? onInterrupt(() => stop.abort()) : () => undefined;
  try {
    const show = options.json ? printJson : watch ? showLine : showTable;
    show(await client.queues());
    while (watch && !stop.signal.aborted) {
      await systemClock.sleep(WATCH_MS, stop.signal);
      if (!stop.signal.aborted) show(await client.queues());
    }
  } finally {
    dispose();
    await client.close();
  }
}

function showTable(report: QueueReport): void {
  print(
    table(
      cellsOf(report).map(([name, value]) => [paint('dim', name), value]),
      [1],
    ),
  );
  if (!report.wait) print(paint('dim', 'that process took no wake in the last 5 minutes'));
  for (const lines of [providerLines(report.providers), waitingLines(report), runningLines(report)])
    if (lines.length > 0) print(`\n${lines.join('\n')}`);
}

function providerLines(providers: readonly ProviderLoad[]): string[] {
  return providers.map(({ provider, turns, callsPerMinute, running, waiting, oldest }) => {
    const slots =
      turns === null ? `${number(running)} running` : `${number(running)} of ${number(turns)} slots`;
    const rate = callsPerMinute === null ? '' : `, at most ${number(callsPerMinute)} calls a minute`;
    const waits =
      waiting === 0 || oldest === null ? '' : `, ${number(waiting)} waiting for up to ${since(oldest)}`;
    return `${provider}: ${slots}${rate}${waits}`;
  });
}

function waitingLines({ turns: { waiting, waitingTotal } }: QueueReport): string[] {
  const lines = waiting.map(({ agent, conversation, words }) => `@${agent} in ${conversation} ${words}`);
  return withMore(lines, waitingTotal, 'waiting');
}

function runningLines({ turns: { running, runningTotal } }: QueueReport): string[] {
  const lines = running.map(
    ({ agent, conversation, turn, provider, since: began }) =>
      `@${agent} in ${conversation} has run ${turn} for ${since(began)}${provider === null ? '' : ` with ${provider}`}`,
  );
  return withMore(lines, runningTotal, 'running');
}

function withMore(lines: string[], total: number, what: string): string[] {
  const more = total - lines.length;
  return more > 0 ? [...lines, paint('dim', `and ${number(more)} more ${what}`)] : lines;
}

function since(at: number): string {
  return ageWords(systemClock.now() - at);
}

function showLine(report: QueueReport): void {
  print(
    cellsOf(report)
      .map(([name, value]) => `${paint('dim', name)} ${value}`)
      .join('  '),
  );
}

function cellsOf({ waiting, active, delayed, failed = 0, wait, turns }: QueueReport): [string, string][] {
  const cells: [string, string][] = [
    ['waiting', number(waiting)],
    ['active', number(active)],
    ['delayed', number(delayed)],
    ['failed', failed > 0 ? paint('red', number(failed)) : '0'],
  ];
  if (turns.oldestMs !== null) cells.push(['oldest', ageWords(turns.oldestMs)]);
  if (!wait) return cells;
  const { p50Ms, p95Ms, count } = wait;
  return [...cells, ['wait p50', `${p50Ms} ms`], ['wait p95', `${p95Ms} ms`], ['wakes', number(count)]];
}

const MOST_TEXT = 80;

interface StuckOptions extends ClientOptions {
  after?: number;
}

/** Prints what is stuck, and what can be done about it. */
export async function stuck({ after, ...options }: StuckOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    const report = await client.stuck({ afterMs: after === undefined ? undefined : after * 1_000 });
    if (options.json) printJson(report);
    else for (const line of stuckLines(report)) print(line);
  } finally {
    await client.close();
  }
}

export function stuckLines({ stuck: lines, total, awayServers = [] }: StuckReport): string[] {
  if (total + awayServers.length === 0) return [paint('dim', 'nothing is stuck')];
  const more = total - lines.length;
  return [
    ...awayServers.flatMap(({ server, agents }) => [
      `the tool server ${server} is away: ${agents.map((agent) => `@${agent}`).join(', ')} without its tools`,
      paint('dim', '  to find the cause: troupe doctor'),
    ]),
    ...lines.flatMap((line) => [
      `@${line.agent} in ${line.conversation} ${line.words}`,
      ...line.actions.map((action) => paint('dim', `  ${adviceOf(action, line)}`)),
    ]),
    ...(more > 0 ? [paint('dim', `and ${number(more)} more`)] : []),
  ];
}

function adviceOf(
  action: StuckLine['actions'][number],
  { conversation, agent, turn, reason }: StuckLine,
): string {
  switch (action) {
    case 'abort':
      return `to stop it: POST /api/commands ${JSON.stringify({ command: 'abort', turn })}`;
    case 'raise_limit':
      return `to let more run at once: ${limitOf(reason)} in the agents file`;
    case 'answer':
    case 'decide':
      return personAdvice(conversation, reason);
    case 'define':
      return `to go on: define @${agent} in the agents file again, or give the agent that it is now aliases: ["${agent}"]; to end its tasks: troupe tasks ${conversation} --open, troupe cancel`;
    case 'check_provider':
      return 'to find the cause: does the provider answer?';
  }
}

function personAdvice(conversation: string, reason: StuckLine['reason']): string {
  if (reason.kind !== 'unanswered') return '';
  const { asks, task, text } = reason;
  const said = clip(text, MOST_TEXT);
  if (asks === 'question') return `${said}: troupe answer ${conversation} ${task} TEXT`;
  return `${said}: troupe approve ${conversation} ${task}, or deny`;
}

function limitOf(reason: StuckLine['reason']): string {
  if (reason.kind === 'slot_full')
    return `limits.providers.${reason.provider ?? '<name>'}.turns, limits.turnsPerTenant`;
  return 'limits.providers.<name>.callsPerMinute';
}

export async function trace(turn: string, options: ClientOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    const found = await client.trace(turn);
    if (options.json) printJson(found);
    else print(renderTrace(found));
  } finally {
    await client.close();
  }
}

const STATUS_STYLE = { done: 'green', running: 'cyan', failed: 'red', aborted: 'yellow' } as const;

function renderTrace({ turn, status, events, prompts, cost }: TurnTrace): string {
  const start = events[0]?.at ?? 0;
  const rows = events.map((event) => [
    paint('dim', `${event.seq}`),
    paint('dim', `+${number(event.at - start)} ms`),
    event.kind,
    clip(describeEvent(event), Math.max(30, screenWidth() - 40)),
  ]);
  return [
    `${paint('bold', turn)} ${paint(STATUS_STYLE[status], status)}${cost === null ? '' : `, ${dollars(cost)}`}`,
    table(rows, [0, 1]),
    renderPrompts(prompts),
  ].join('\n\n');
}

function renderPrompts(prompts: TurnTrace['prompts']): string {
  if (prompts.length === 0) return paint('dim', 'no prompt was sent');
  const heads = ['step', 'model', 'sent', 'messages', 'tokens', 'cost', 'layers'];
  const rows = prompts.map(({ step, model, mode, count, tokens, layers, cost }) => [
    `${step}`,
    model,
    mode,
    `${count}`,
    number(tokens.total),
    cost === null ? '-' : dollars(cost),
    layers.map((layer) => `${layer.name} ${number(layer.tokens)}`).join(', '),
  ]);
  return table([heads.map((head) => paint('dim', head)), ...rows], [0, 3, 4, 5]);
}

function dollars(cost: number): string {
  return `$${cost.toFixed(Math.abs(cost) < 0.01 ? 6 : 4)}`;
}

export async function cost(conversation: string, options: ClientOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    const found = await client.cost(conversation);
    if (options.json) printJson(found);
    else print(renderCost(found));
  } finally {
    await client.close();
  }
}

const CALLS = { answered: 'answers', summarised: 'summaries', failed: 'failed calls' };

function renderCost({ total, outcomes, agents, tools, models, days, unknown }: ConversationCost): string {
  const heads = ['', 'cost', 'cache saved', 'calls', 'input', 'cached', 'output'];
  const rows = [
    costRow('all', total),
    ...outcomes.map((sum) => costRow(CALLS[sum.outcome], sum)),
    ...agents.map((sum) => costRow(`@${sum.agent}`, sum)),
    ...tools.map((sum) => costRow(sum.tool === null ? 'no tool' : `tool ${sum.tool}`, sum)),
    ...models.map((sum) => costRow(sum.model, sum)),
    ...days.map((sum) => costRow(sum.day, sum)),
  ];
  const reasons = unknown.map(({ agent, model, reason, calls }) =>
    reason === 'no_price'
      ? `unknown: ${calls} calls of @${agent}, the price of "${model}" is not known: set price`
      : `unknown: ${calls} calls of @${agent}, the vendor of "${model}" reported no tokens`,
  );
  return [
    table([heads.map((head) => paint('dim', head)), ...rows], [1, 2, 3, 4, 5, 6]),
    ...reasons.map((line) => paint('yellow', line)),
  ].join('\n');
}

function costRow(name: string, { usd, saved, calls, usage }: CostSum): string[] {
  const { input, cacheRead, output } = usage;
  const counts = [calls, input, cacheRead, output].map((count) => number(Math.round(count)));
  return [name, usd === null ? '-' : dollars(usd), usd === null ? '-' : dollars(saved), ...counts];
}
