import {
  type Event,
  eventOf,
  parseTurnId,
  redactSecrets,
  type Tool,
  TroupeError,
  type TroupeInput,
} from './troupe.ts';
import { type Company, readCompany } from './company.ts';
import type { ConversationRun, RunPrompt } from './conversation-run.ts';
import { importedMoves, importedTurns, isImported } from './imported-rounds.ts';
import { playToItsEnd } from './play-conversation.ts';
import { recordedMoves } from './recorded-moves.ts';
import { differenceOfSchedules, startOf, unknownSchedule } from './recorded-times.ts';
import { recordedServers, withRecordedServers } from './recorded-servers.ts';
import { recordedTurns, type RecordedTurns } from './recorded-turns.ts';
import type { RecordedCall, Recording } from './recording.ts';
import { agentsOf } from './refusal.ts';
import type { UserMove } from './user.ts';

/** A recording, the moves of its people, and the run that it gave when it was tried. */
export interface RecordedTest {
  recording: Recording;
  moves: readonly UserMove[];
  run: ConversationRun;
}

/**
 * Makes a test of a conversation, and plays it once: it is given only if every recorded answer was asked for, and nothing
 * else. Keys and whatever the company's `redact` hides are left out. Throws `command_refused`, and `config_invalid` for a
 * company that lacks an agent of the conversation.
 */
export async function recordTest(stored: ConversationRun, company: Company): Promise<RecordedTest> {
  const { definition: written } = await readCompany(company);
  const unaddressed = written.defaults?.respondWhenUnaddressed ?? undefined;
  const run = redacted(stored, written.redact);
  const servers = recordedServers(run.turns, written);
  const definition = withRecordedServers(written, servers);
  const isForeign = isImported(run);
  const turns = isForeign ? importedTurns(run) : recordedTurns(run);
  const { moves, files } = isForeign ? importedMoves(run, unaddressed) : recordedMoves(run, unaddressed);
  if (moves.length === 0) throw refused(run, 'nobody speaks in it');
  requireAgents(turns, new Set(definition.agents.map(({ id }) => id)));
  const { tools = [] } = definition;
  const cannot = isForeign ? null : whatCannotBePlayed(run, turns, definition);
  if (cannot) throw refused(run, cannot);
  const startsAt = isForeign ? null : startOf(run);
  const standIns = isForeign ? standInsFor(turns, tools) : {};
  const recording: Recording = {
    version: 1,
    conversation: run.conversation,
    ...(startsAt !== null && { startsAt }),
    agents: {},
    answers: turns.answers,
    calls: await callsAsGiven(turns, tools, standIns),
    standIns,
    servers,
    files,
  };
  const played = await playToItsEnd(company, moves, { recording, mostMoves: moves.length });
  const difference = differenceOf(run, recording, played);
  if (difference) throw refused(run, difference);
  return { recording: { ...recording, agents: agentsOf(played) }, moves, run: played };
}

function refused({ conversation }: ConversationRun, why: string): TroupeError {
  const message = `${conversation} cannot be played again as a test: ${why}`;
  return new TroupeError('command_refused', message, { conversation });
}

type Redact = (text: string, where: Pick<Event, 'kind' | 'author'>) => string;

function redacted(run: ConversationRun, redact: Redact = (text) => text): ConversationRun {
  const hideKeys = redactSecrets();
  const cleaned = (value: unknown, { kind, author }: Pick<Event, 'kind' | 'author'>): unknown => {
    const where = { kind, author };
    const text = JSON.stringify(value, (_, part: unknown) =>
      typeof part === 'string' ? hideKeys(redact(part, where), where) : part,
    );
    return JSON.parse(text) as unknown;
  };
  const clean = (event: Event) => ({ ...event, body: cleaned(event.body, event) }) as Event;
  const events = new Map(run.events.map((event) => [event, clean(event)]));
  const turns = run.turns.map((turn) => ({
    ...turn,
    events: turn.events.map((event) => events.get(event) ?? clean(event)),
    prompts: turn.prompts.map((prompt) => {
      const [start] = turn.events;
      return start ? { ...prompt, tools: cleaned(prompt.tools, start) as RunPrompt['tools'] } : prompt;
    }),
  }));
  return { ...run, events: [...events.values()], turns };
}

function requireAgents({ answers }: RecordedTurns, known: ReadonlySet<string>): void {
  for (const { turn } of answers) {
    const agent = parseTurnId(turn)?.agent ?? '';
    if (known.has(agent)) continue;
    const message = `the agents file has no agent "${agent}", who speaks in the conversation`;
    throw new TroupeError('config_invalid', message, { agent });
  }
}

/** Null: nothing is known to be in the way. */
function whatCannotBePlayed(
  run: ConversationRun,
  turns: RecordedTurns,
  definition: Pick<TroupeInput, 'tools' | 'schedules'>,
): string | null {
  const unknown = unknownSchedule(run, definition);
  if (unknown) return `the agents file has no schedule "${unknown}", which sent a message in it`;
  const asking = askingTool(run, turns, definition.tools ?? []);
  return asking ? `the tool ${asking} asked a person during its call` : null;
}

/** Null: it went as it did. */
function differenceOf(run: ConversationRun, { answers }: Recording, played: ConversationRun): string | null {
  const ofSchedules = differenceOfSchedules(run, played);
  if (ofSchedules) return ofSchedules;
  if (played.ended.kind === 'impossible') return played.ended.why;
  const asked = new Set(recordedTurns(played).answers.map(({ turn, step }) => `${turn} ${step}`));
  const left = answers.find(({ turn, step }) => !asked.has(`${turn} ${step}`));
  return left ? `nothing asks for step ${left.step} of ${left.turn}` : null;
}

/** A tool of the company or of a server that asked something of people, which its stand-in cannot do. */
function askingTool(
  { events }: ConversationRun,
  { calls }: RecordedTurns,
  tools: readonly Tool[],
): string | undefined {
  const questions = events.flatMap((event) => eventOf(event, 'question')?.body.question ?? []);
  const asking = calls.find(
    ({ tool, result }) =>
      tools.some(({ name }) => name === tool) && questions.some((id) => result.startsWith(`${id} is asked`)),
  );
  return asking?.tool;
}

function standInsFor({ calls }: RecordedTurns, tools: readonly Tool[]): Recording['standIns'] {
  const standIns: Recording['standIns'] = {};
  for (const { tool, agent } of calls) {
    if (tools.some(({ name }) => name === tool)) continue;
    const agents = (standIns[tool] ??= []);
    if (!agents.includes(agent)) agents.push(agent);
  }
  return standIns;
}

/** Calls of tools of the company, with the arguments as the tools are given them. Built-in tools run in tests too. */
async function callsAsGiven(
  { calls }: RecordedTurns,
  tools: readonly Tool[],
  standIns: Recording['standIns'],
): Promise<RecordedCall[]> {
  const given: RecordedCall[] = [];
  for (const { turn, tool: name, args: text, outcome, result } of calls) {
    const tool = tools.find((each) => each.name === name);
    if (!tool && !Object.hasOwn(standIns, name)) continue;
    const args = await checked(tool, text);
    // Troupe refuses it again, and the tool never runs.
    if (args === null) continue;
    given.push({ turn, tool: name, args, outcome, result });
  }
  return given;
}

async function checked(tool: Tool | undefined, text: string): Promise<Record<string, unknown> | null> {
  try {
    const args: unknown = JSON.parse(text.trim() || '{}');
    if (typeof args !== 'object' || args === null || Array.isArray(args)) return null;
    const result = tool ? await tool.check(args) : { value: args };
    return 'value' in result ? (JSON.parse(JSON.stringify(result.value)) as Record<string, unknown>) : null;
  } catch {
    // It is not JSON.
    return null;
  }
}
