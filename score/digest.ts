import { createHash } from 'node:crypto';
import { countTokens } from '../src/context/budget/tokens.ts';
import { candidateSteps } from '../src/context/extract/candidates.ts';
import { collectFacts } from '../src/context/extract/facts.ts';
import { extractHandoff, phaseSteps } from '../src/context/extract/handoff.ts';
import {
  atOnce,
  beginTurn,
  chooseMemories,
  type CompactionBase,
  createView,
  DEFAULT_POLICY,
  extractCompaction,
  fitSummaryRequest,
  foldAhead,
  foldEvent,
  handoffRequestSteps,
  shownSeqs,
  summarySteps,
  turnPrefixSteps,
} from '../src/context/index.ts';
import { memoryText } from '../src/context/retrieve/documents.ts';
import { createSearchIndex } from '../src/context/retrieve/search.ts';
import { peopleOf } from '../src/context/text/people.ts';
import {
  type AgentId,
  type CompactionBody,
  type Event,
  type EventDraft,
  SYSTEM_AUTHOR,
  type TurnId,
} from '../src/events/index.ts';
import { SECRET } from '../test/support/log-player.ts';
import { HAS_DATA } from '../test/support/real-logs.ts';
import { DATA_FILES, namedLogs, NO_DATA } from './data-files.ts';
import { everyKindLog } from './every-kind-log.ts';
import { Compactor, windowFor } from './compactor.ts';
import { promptFor, Replay, withAssistant } from './replay.ts';

/**
 * `npm run score:digest`: a hash of everything a model is sent, for every log of `../shared/data` in several windows.
 * A refactoring must not change any line. Deterministic, takes about a minute.
 */
const AGENTS = ['ada', 'bob', 'cyd'];
/** `share` is a part of the log's own tokens, so that short logs are compacted, too. */
const WINDOWS = [
  { name: '1/6', share: 1 / 6 },
  { name: '8k', tokens: 8_000 },
  { name: '32k', tokens: 32_000 },
  { name: '128k', tokens: 128_000 },
] as const;
const LEAST_WINDOW = 700;
/** Logs with fewer tokens fit into the larger windows, so they are played in the first two only. */
const SHORT_LOG_TOKENS = 16_000;
/** One summary request per this many requests. */
const SUMMARY_EVERY = 40;
const QUERIES = 20;

/** Events that an agent writes in a played log. */
const PLAYED: ReadonlySet<Event['kind']> = new Set(['step', 'tool.result', 'turn.failed', 'turn.aborted']);

type Hash = (value: unknown) => void;

printMadeUp();
if (!HAS_DATA) console.log(NO_DATA);
else for (const file of DATA_FILES) await printLines(file);

/** Content that real logs lack: every kind of event, strangers, namesakes. Each agent is asked at several places. */
function printMadeUp(): void {
  const log = everyKindLog(12);
  for (const agent of [...AGENTS, 'observer'] as AgentId[])
    console.log(`every kind @${agent}: ${hashOf((add) => addAsked(log, agent, add))}`);
  const played = log.filter(({ author, kind }) => author.kind !== 'agent' || PLAYED.has(kind));
  console.log(`every kind played: ${digestOf(played, 3_000)}`);
  for (const maxTokens of [20_000, 4_000, 2_000, 1_500, 1_100]) {
    const fit = { maxTokens, count: countTokens, budgetTokens: 500, secret: SECRET };
    const request = fitSummaryRequest({ ...fit, previous: null, events: log, trusted: ['Uma'] });
    console.log(`every kind summary ${maxTokens}: ${request?.level}, ${hashOf((add) => add(request))}`);
  }
  for (const trusted of [null, ['Uma']]) {
    const made = hashOf((add) => {
      add(collectFacts(log, null, trusted));
      add(atOnce(phaseSteps(log, trusted)));
      add(
        atOnce(candidateSteps(log, [], { count: countTokens, trusted })).map((each) => [each, each.units()]),
      );
      const quiet = log.filter(({ kind }) => kind !== 'compaction');
      for (const agent of [null, ...AGENTS] as (AgentId | null)[]) {
        add(extractHandoff(quiet, agent, trusted));
        add(log.map((event) => memoryText(event, agent)));
      }
      const base = { number: 1, upTo: log.length, reason: 'over_budget', by: 'bob', before: 90_000 } as const;
      const policy = DEFAULT_POLICY;
      const how = { ...base, budget: 2_000, events: log, previous: null, policy, secret: SECRET, trusted };
      const given = { ...how, people: peopleOf(log), count: countTokens } as unknown as CompactionBase;
      add(extractCompaction(given));
      add(atOnce(summarySteps({ ...given, text: '## Goal\nall\n## Constraints\nnone\n## Next\nmore' })));
    });
    console.log(`every kind made short, ${trusted ? 'Uma trusted' : 'all trusted'}: ${made}`);
  }
}

/** The prompts of a turn that begins at every fifth event; each view is folded from scratch. */
function addAsked(log: readonly Event[], agent: AgentId, add: Hash): void {
  for (let upTo = 5; upTo <= log.length; upTo += 5) {
    const view = createView(agent, SECRET);
    for (const event of log.slice(0, upTo)) foldEvent(view, event);
    const inputs = view.pending.slice(-2).map(({ seq }) => seq);
    const join = (['full', 'summary', 'fresh'] as const)[upTo % 3] ?? 'full';
    const live = { time: 'now', ...(upTo % 2 === 0 && { memories: '#1 Uma: old' }) };
    beginTurn(view, { id: 't' as TurnId, upTo, inputs, live, join, baseline: 'b' });
    const note = { id: 'note', author: SYSTEM_AUTHOR, to: [], turn: 't', kind: 'injection' };
    const body = { content: 'one step left', oneStep: true };
    add(promptFor({ view, agent, step: 0 }));
    foldAhead(view, { ...note, body } as unknown as EventDraft, countTokens);
    add(promptFor({ view, agent, step: 1 }));
    add([...shownSeqs(view)]);
  }
}

async function printLines(file: string): Promise<void> {
  for (const [name, log] of await namedLogs(file, false)) {
    const tokens = log.reduce((sum, event) => sum + event.tokens, 0);
    for (const window of tokens < SHORT_LOG_TOKENS ? WINDOWS.slice(0, 2) : WINDOWS) {
      const size =
        'tokens' in window ? window.tokens : Math.max(LEAST_WINDOW, Math.floor(tokens * window.share));
      console.log(`${name} ${window.name}: ${digestOf(log, size)}`);
    }
    console.log(`${name} search: ${hashOf((add) => addSearches(log, add))}`);
  }
}

function digestOf(log: readonly Event[], window: number): string {
  const replay = new Replay((n) => AGENTS[(n * 7 + (n % 5)) % AGENTS.length] ?? '');
  const compactor = new Compactor(windowFor({ window, fixed: 50 }));
  let prompts = 0;
  let compactions = 0;
  const hash = hashOf((add) => {
    for (const call of replay.play(withAssistant(log))) {
      const draft = compactor.beforeCall(replay, call);
      if (draft) {
        compactions += 1;
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
  return `${prompts} prompts, ${compactions} compactions, ${hash}`;
}

/** The summary request for each compaction, and the request and result of a handoff at the end. */
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
