import { createHash } from 'node:crypto';
import { countTokens } from '../src/context/count-tokens.ts';
import { extractHandoff } from '../src/context/extract/extract-handoff.ts';
import { atOnce, fitSummaryRequest, RENDERING, turnPrefixSteps } from '../src/context/index.ts';
import { handoffRequestSteps } from '../src/context/summary/handoff-request.ts';
import { chooseMemories } from '../src/context/retrieve/choose-memories.ts';
import { createSearchIndex } from '../src/context/retrieve/search-index.ts';
import type { AgentId, CompactionBody, Event } from '../src/events/index.ts';
import { SECRET } from '../test/support/log-player.ts';
import { HAS_DATA } from '../test/support/real-logs.ts';
import { DATA_FILES, namedLogs, NO_DATA } from './data-files.ts';
import { Relief, windowFor } from './relieve-call.ts';
import { promptFor, Replay, withAssistant } from './replay.ts';

/**
 * `npm run score:digest`: a hash of everything a model is sent, for every log of `../shared/data` in several windows. A
 * change that is meant to keep behaviour must keep every line. Deterministic, about a minute.
 */
const AGENTS = ['ada', 'bob', 'cyd'];
/** `share` is a part of the log's own tokens, so that short logs are compacted too. */
const WINDOWS = [
  { name: '1/6', share: 1 / 6, rendering: RENDERING },
  { name: '8k', tokens: 8_000, rendering: RENDERING },
  { name: '32k', tokens: 32_000, rendering: 1 },
  { name: '128k', tokens: 128_000, rendering: RENDERING },
] as const;
const LEAST_WINDOW = 700;
/** Logs with fewer tokens are played in the first two windows only: in larger ones all of them fits. */
const SHORT_LOG_TOKENS = 16_000;
/** How many requests lie between two that are asked for a summary. */
const SUMMARY_EVERY = 40;
const QUERIES = 20;

type Hash = (value: unknown) => void;

if (!HAS_DATA) console.log(NO_DATA);
else for (const file of DATA_FILES) await printLines(file);

async function printLines(file: string): Promise<void> {
  for (const [name, log] of await namedLogs(file, false)) {
    const tokens = log.reduce((sum, event) => sum + event.tokens, 0);
    for (const window of tokens < SHORT_LOG_TOKENS ? WINDOWS.slice(0, 2) : WINDOWS) {
      const size =
        'tokens' in window ? window.tokens : Math.max(LEAST_WINDOW, Math.floor(tokens * window.share));
      console.log(`${name} ${window.name}: ${digestOf(log, size, window.rendering)}`);
    }
    console.log(`${name} search: ${hashOf((add) => addSearches(log, add))}`);
  }
}

function digestOf(log: readonly Event[], window: number, rendering: number): string {
  const replay = new Replay((n) => AGENTS[(n * 7 + (n % 5)) % AGENTS.length] ?? '', rendering);
  const relief = new Relief(windowFor({ window, fixed: 50 }));
  let prompts = 0;
  let rewrites = 0;
  const hash = hashOf((add) => {
    for (const call of replay.play(withAssistant(log))) {
      const draft = relief.beforeCall(replay, call);
      if (draft) {
        rewrites += 1;
        add(draft);
      }
      add(promptFor(call));
      if (prompts++ % SUMMARY_EVERY > 0) continue;
      const fit = { budgetTokens: 500, secret: SECRET, maxTokens: window, count: countTokens };
      const { id: turn } = call.turn;
      const prefix = { turn, trigger: 'the task', previous: null, outputs: call.outputs };
      add(atOnce(turnPrefixSteps({ ...fit, ...prefix })));
    }
    addRequests(replay.log, window, add);
  });
  return `${prompts} prompts, ${rewrites} compactions, ${hash}`;
}

/** What a summariser would be sent for each compaction, and the request and result of a handoff at the end. */
function addRequests(log: readonly Event[], window: number, add: Hash): void {
  const fit = { budgetTokens: 500, secret: SECRET, maxTokens: Math.ceil(window / 2), count: countTokens };
  let previous: CompactionBody | null = null;
  for (const event of log) {
    if (event.kind !== 'compaction') continue;
    const after: number = previous?.upTo ?? 0;
    const events = log.filter(({ seq }) => seq > after && seq <= event.body.upTo);
    add(event.body);
    add(fitSummaryRequest({ ...fit, previous, events }));
    previous = event.body;
  }
  const [from, to] = ['ada', 'bob'] as AgentId[] as [AgentId, AgentId];
  const events = log.slice(-100);
  const before = previous?.summary ?? '';
  add(atOnce(handoffRequestSteps({ ...fit, events, before, from, to })));
  add(extractHandoff(events, from));
}

function addSearches(log: readonly Event[], add: Hash): void {
  const index = createSearchIndex();
  index.add(log);
  const events = new Map(log.map((event) => [event.seq, event]));
  const every = Math.max(1, Math.floor(log.length / QUERIES));
  for (let at = 0; at < log.length; at += every) {
    const event = log[at] as Event;
    const query = event.kind === 'message' ? event.body.content : event.kind;
    const hits = index.search(query, 20);
    const shown = { events, viewer: null, isInWindow: () => false, countTokens };
    add([hits, index.answerTo(event.seq), chooseMemories({ ...shown, hits })]);
  }
}

function hashOf(fill: (add: Hash) => void): string {
  const hash = createHash('sha256');
  fill((value) => hash.update(`${JSON.stringify(value)}\n`));
  return hash.digest('hex').slice(0, 16);
}
