import path from 'node:path';
import { writeFile } from 'node:fs/promises';
import { TroupeError } from '../../base/errors.ts';
import type { Event } from '../../events/index.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { loadEvals, type RunSource, type TestMade } from '../evals/evals-package.ts';
import { findAgents, recallAgents } from '../process/find-agents.ts';
import { count, print, printJson, paint, table } from '../render/output.ts';
import { once } from 'node:events';
import type { ShownScores } from '../evals/page-frame.ts';
import { onInterrupt, openBrowser } from '../process/terminal.ts';

interface RecordOptions extends ClientOptions {
  out?: string;
}

const DEFAULT_DATA = '.troupe';
const ENDING = '.test.ts';

/** Writes a test of a conversation. An existing test is kept, because somebody may have changed it; its recording is replaced. */
export async function evalRecord(conversation: string, options: RecordOptions): Promise<void> {
  const { json, data = DEFAULT_DATA, out = conversation.replaceAll(':', '-') } = options;
  const agents = (await findAgents(options.agents)) ?? (await recallAgents(data));
  if (!agents?.file)
    throw new TroupeError('config_invalid', 'a test needs an agents file: name one with --agents');
  const evals = await loadEvals();
  const base = out.endsWith(ENDING) ? out.slice(0, -ENDING.length) : out;
  const [test, recording] = [`${base}${ENDING}`, `${base}.recording.json`];
  const hasServers = agents.definition.mcpServers !== undefined;
  const company = { agentsFile: agents.file, hasServers };
  const made = await withStored(options, (source) => evals.recordConversation(source, conversation, company));
  const from = path.dirname(path.resolve(test));
  const text = made.testFor({
    agents: besideOf(from, agents.file),
    recording: besideOf(from, path.resolve(recording)),
  });
  await write(recording, `${JSON.stringify(made.recording, null, 2)}\n`, 'w');
  const isNew = await write(test, text, 'wx');
  if (json) printJson({ conversation, test, recording, isNew, ...made.size });
  else print(report(test, recording, isNew, made));
}

async function withStored<T>(options: RecordOptions, act: (source: RunSource) => Promise<T>): Promise<T> {
  const client = await connect(options, { needs: 'names' });
  try {
    return await act({
      events: (id) => readLog(client, id),
      promptOf: (turn, step) => client.promptOf(turn, step),
      trace: (turn) => client.trace(turn),
    });
  } finally {
    await client.close();
  }
}

async function readLog(client: Client, id: string): Promise<{ events: Event[]; head: number }> {
  const head = await client.head(id);
  if (head === 0)
    throw new TroupeError('conversation_unknown', `there is no conversation "${id}"`, { conversation: id });
  const events: Event[] = [];
  const stop = new AbortController();
  for await (const frame of client.follow(id, 0, stop.signal)) {
    if (frame.type === 'event') events.push(frame.event);
    if ((events.at(-1)?.seq ?? 0) >= head) break;
  }
  stop.abort();
  return { events, head };
}

function besideOf(folder: string, file: string): string {
  const relative = path.relative(folder, file).split(path.sep).join('/');
  return relative.startsWith('.') ? relative : `./${relative}`;
}

/** Returns false with `wx` if the file already exists. */
async function write(file: string, text: string, flag: 'w' | 'wx'): Promise<boolean> {
  try {
    await writeFile(file, text, { flag });
    return true;
  } catch (cause) {
    if (flag === 'wx' && (cause as NodeJS.ErrnoException).code === 'EEXIST') return false;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError('data_unwritable', `cannot write ${file}: ${reason}`, { file }, { cause });
  }
}

function report(test: string, recording: string, isNew: boolean, made: TestMade): string {
  const { moves, turns, answers, calls } = made.size;
  return [
    `${test}: ${isNew ? `${count(moves, 'move')} of people, ${count(turns, 'turn')}` : 'kept as it was'}`,
    `${recording}: ${count(answers, 'answer')} of models, ${count(calls, 'result')} of tools`,
    `played once, offline: run it with npx vitest run ${test}`,
  ].join('\n');
}

interface ShowOptions {
  port: number;
  open?: boolean;
  json?: boolean;
}

/**
 * Shows scores and their conversations beside a baseline, until interrupted. For this machine only, because the pages ask for
 * no credential.
 */
export async function evalShow(
  after: string,
  before: string | undefined,
  options: ShowOptions,
): Promise<void> {
  const [evals, { createEvalApp }, { createOpenRuns }, { countRuns, readShownScores }, { serveHttp }] =
    await Promise.all([
      loadEvals(),
      // Loaded only for this command.
      import('../evals/eval-app.ts'),
      import('../evals/open-runs.ts'),
      import('../evals/page-frame.ts'),
      import('../../http/api/index.ts'),
    ]);
  const shown = readShownScores(evals, after, before);
  await using runs = createOpenRuns(evals);
  const stop = new AbortController();
  const stopped = once(stop.signal, 'abort');
  const dispose = onInterrupt(() => stop.abort());
  try {
    const server = await serveHttp(createEvalApp(shown, runs), { port: options.port });
    const page = `${server.url}/`;
    const counts = { ...countRuns(shown), ...foldersOf(shown) };
    if (options.json) printJson({ url: server.url, page, ...counts });
    else showBanner(page, counts);
    if (options.open) await openBrowser(page);
    await stopped;
    await server.close();
  } finally {
    dispose();
  }
}

type Counts = ReturnType<typeof foldersOf> & { runs: number; kept: number };

function foldersOf({ before, after }: ShownScores) {
  return { folder: after.folder, baseline: before?.folder ?? null };
}

function showBanner(page: string, { folder, baseline, runs, kept }: Counts): void {
  const rows = [
    ['Page', paint('cyan', page)],
    ['Scores', folder],
    ['Baseline', baseline ?? 'none: name its folder to compare'],
    ['Runs', `${runs}, ${kept} with their conversation`],
  ];
  print(table(rows.map(([name = '', value = '']) => [paint('dim', name), value])));
  print(paint('dim', 'Nothing is written to these folders. Ctrl-C stops.'));
}

/** Compares two files of scores. The exit code is 1 if a score became worse. */
export async function evalCompare(
  before: string,
  after: string,
  { json }: { json?: boolean },
): Promise<void> {
  const evals = await loadEvals();
  const [was, is] = [evals.readScorecard(before), evals.readScorecard(after)];
  const compared = evals.compareScores(was, is);
  const worse = evals.worseOnes(compared);
  if (json) printJson({ ok: worse.length === 0, compared });
  else print(evals.scoresTable(is, was, [after, before]));
  if (worse.length > 0) process.exitCode = 1;
}
