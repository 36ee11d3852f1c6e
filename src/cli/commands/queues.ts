import { systemClock } from '../../base/clock.ts';
import { ageWords } from '../../library/inspect/turn-queue.ts';
import type { ProviderLoad, QueueReport } from '../../library/troupe.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { onInterrupt } from '../process/interrupt.ts';
import { number, paint, print, printJson, table } from '../render/output.ts';

interface QueuesOptions extends ClientOptions {
  watch?: boolean;
}

const WATCH_MS = 1_000;

/** Prints who runs, who waits and for how long; with `--watch`, a line of numbers every second until Ctrl-C. */
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
