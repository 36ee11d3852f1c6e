import * as z from 'zod';
import type { AgentRegistry } from '../src/actors/actor/agent-runtime.ts';
import { parseTroupe } from '../src/library/config/agents-file.ts';
import { buildAgentRegistry } from '../src/library/config/build-agent-registry.ts';
import { type AgentId, NO_USAGE } from '../src/events/index.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from '../src/providers/provider.ts';
import { createFakeSessions, type SessionMemory } from '../packages/testing/src/fake-sessions.ts';
import { defineTool, type Tool } from '../src/tools/tool.ts';
import { below, between, pick, type Random } from './random.ts';

/** Three agents; one of them joins late and does not see earlier messages. */
export const AGENTS = ['bo', 'cy', 'di'] as const;
export const LATE_AGENT = 'di';

/** An agent whose window holds little more than its instructions. */
export const CROWDED_AGENT = 'cy';
const CROWDED_WINDOW = 1_500;
/** Tool descriptions take space in the prompt. */
const FEW_TOOLS = ['note', 'put', 'sign', 'handoff'];

/** An agent with a session-stateful provider. */
export const REMEMBERING_AGENT = 'bo';

/** Exact token counts are irrelevant here. */
export const countTokens = (text: string): number => Math.ceil(text.length / 4);

/** What the tools really did. No crash erases it. */
export interface ToolLedger {
  [effect: string]: { name: string; nonce: string; runs: number };
}

/** How models and tools of a process wait, and when they may misbehave. */
export interface Stage {
  random: Random;
  ledger: ToolLedger;
  /** Does `work` when the scheduler runs this step; never returns in a dead process. */
  act<T>(label: string, work: () => T): Promise<T>;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  isCalm(): boolean;
  leaseMs: number;
  /** True if some tasks have a deadline of their own. */
  deadlines: boolean;
  /** What the provider of the agent with sessions keeps on this machine. */
  memory: SessionMemory;
  machine: string;
  /** True if its sessions can be rewound. */
  rewinds: boolean;
  isAlive(): boolean;
  /** Called when a model is asked for a step of this turn. */
  asked(turn: string): void;
}

const NOTE = z.object({ nonce: z.string() });

const resting: Provider = {
  name: 'scripted',
  capabilities: { ...STATELESS, interleavedSystem: true, caching: 'none', reportsUsage: false },
  stream() {
    throw new Error('this process has no model yet');
  },
};

/** Parsed and counted once; each process gets its own models and tools. */
const template = buildAgentRegistry(
  parseTroupe({
    agents: AGENTS.map((id) => ({
      id,
      provider: 'scripted' as const,
      script: { rules: [{}] },
      tools: id === CROWDED_AGENT ? FEW_TOOLS : [...FEW_TOOLS, 'delegate', 'ask', 'follow_up', 'cancel_task'],
      join: id === LATE_AGENT ? ('fresh' as const) : ('full' as const),
      // So small that its view is compacted again and again.
      ...(id === CROWDED_AGENT && { contextWindow: CROWDED_WINDOW, maxOutputTokens: 100 }),
    })),
    tools: [toolOf('note', false, null), toolOf('put', true, null), toolOf('sign', false, null)],
  }),
  () => resting,
  countTokens,
);

export function companyOf(stage: Stage): AgentRegistry {
  const provider: Provider = { ...resting, stream: (request, { signal }) => answer(stage, request, signal) };
  const remembering = createFakeSessions({
    memory: stage.memory,
    answer: (request, signal) => answer(stage, request, signal),
    home: stage.machine,
    rewind: stage.rewinds,
    isAlive: () => stage.isAlive(),
  });
  const note = toolOf('note', false, stage);
  const put = toolOf('put', true, stage);
  const sign = toolOf('sign', false, stage);
  const company = new Map<AgentId, NonNullable<ReturnType<AgentRegistry['get']>>>();
  for (const [id, member] of template) {
    const tools = new Map(member.tools).set('note', note).set('put', put).set('sign', sign);
    company.set(id, { ...member, provider: id === REMEMBERING_AGENT ? remembering : provider, tools });
  }
  return company;
}

function toolOf(name: 'note' | 'put' | 'sign', idempotent: boolean, stage: Stage | null): Tool {
  return defineTool({
    name,
    description: idempotent ? 'writes under a key, twice if need be' : 'writes into a book, never twice',
    schema: NOTE,
    idempotent,
    needsApproval: name === 'sign',
    async run({ nonce }, { effect }) {
      if (!stage) return '';
      await stage.act(`tool ${name}`, () => {
        const entry = (stage.ledger[effect] ??= { name, nonce, runs: 0 });
        entry.runs += 1;
        // Another call under the same key: a replay that did not follow the journal.
        if (entry.nonce !== nonce) entry.nonce += `|${nonce}`;
      });
      return `written ${nonce}`;
    },
  });
}

/**
 * A real model never answers twice in the same way. Answers are random here; only the journal makes them permanent.
 */
async function* answer(
  stage: Stage,
  { trace }: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent> {
  const { random } = stage;
  if (trace.purpose !== 'compaction') stage.asked(trace.turn);
  for (const event of script(stage, trace)) {
    if (event.type === 'text' || event.type === 'done') await wait(stage, signal);
    if (signal.aborted) return void (yield { type: 'aborted' });
    if (event.type === 'done' && !stage.isCalm() && random() < 0.05) {
      return void (yield { type: 'failed', error: { code: 'provider_overloaded', message: 'scripted' } });
    }
    yield event;
  }
}

async function wait(stage: Stage, signal: AbortSignal): Promise<void> {
  const dice = stage.random();
  // Long enough for the lease to be renewed, unless the process is paused meanwhile.
  if (dice < 0.06 && !stage.isCalm()) await stage.sleep(stage.leaseMs * (0.3 + dice * 10), signal);
  await stage.act('chunk', () => undefined);
}

function script(stage: Stage, { agent, step, purpose }: ModelRequest['trace']): ModelEvent[] {
  const { random } = stage;
  const dice = random();
  const text = (delta: string): ModelEvent => ({ type: 'text', delta });
  // One summary in five is empty, so that the next strategy is used.
  const summary = dice < 0.2 ? '' : `Goal: go on. Done: what was asked, ${nonce(random)}.`;
  if (purpose === 'compaction')
    return [{ type: 'start' }, text(summary), { type: 'done', stop: 'end', usage: NO_USAGE }];
  const say = [text('well'), ...(random() < 0.3 ? [text(' then')] : [])];
  if (dice < 0.3 && step < 3) {
    const calls = Array.from({ length: 1 + below(random, 2) }, (_, index) => {
      const name = random() < 0.6 ? 'note' : 'put';
      const args = JSON.stringify({ nonce: nonce(random) });
      return { type: 'call', call: { id: `${step}-${index}-${nonce(random)}`, name, args } } as const;
    });
    return [{ type: 'start' }, ...say, ...calls, { type: 'done', stop: 'calls', usage: NO_USAGE }];
  }
  if (dice < 0.6 && dice >= 0.38 && step < 4 && agent !== CROWDED_AGENT && !stage.isCalm()) {
    const calls = Array.from({ length: 1 + below(random, 3) }, (_, index) => ({
      type: 'call' as const,
      call: { id: `d-${index}-${nonce(random)}`, ...dealing(random, stage.deadlines) },
    }));
    return [{ type: 'start' }, ...say, ...calls, { type: 'done', stop: 'calls', usage: NO_USAGE }];
  }
  if (dice < 0.38 && !stage.isCalm()) {
    const to = AGENTS[(AGENTS.indexOf(agent as 'bo') + 1 + below(random, 2)) % AGENTS.length];
    const call = { id: `h-${nonce(random)}`, name: 'handoff', args: JSON.stringify({ to, goal: 'go on' }) };
    return [{ type: 'start' }, { type: 'call', call }, { type: 'done', stop: 'calls', usage: NO_USAGE }];
  }
  return [{ type: 'start' }, ...say, { type: 'done', stop: 'end', usage: NO_USAGE }];
}

/** A task for agents, a question to people, or a request about an earlier task. */
function dealing(random: Random, deadlines: boolean): { name: string; args: string } {
  const dice = random();
  const waiting = {
    wait: random() < 0.8,
    until: pick(random, ['all', 'all', 'first', 'any']),
    ...(deadlines && random() < 0.3 && { deadlineMinutes: between(random, 0.01, 0.3) }),
  };
  const of = (name: string, args: object) => ({ name, args: JSON.stringify(args) });
  if (dice < 0.5)
    return of('delegate', { to: pick(random, AGENTS), task: `task ${nonce(random)}`, ...waiting });
  if (dice < 0.6)
    return of('ask', { to: pick(random, AGENTS), question: `what ${nonce(random)}?`, ...waiting });
  if (dice < 0.75) return of('ask', { question: `who ${nonce(random)}?`, ...waiting });
  if (dice < 0.9) return of('sign', { nonce: nonce(random) });
  if (dice < 0.95) return of('cancel_task', { task: 'd-' });
  return of('follow_up', { task: 'd-', text: 'and then?', ...waiting });
}

function nonce(random: Random): string {
  return below(random, 2 ** 31).toString(36);
}
