import {
  type Event,
  eventOf,
  parseTurnId,
  redactSecrets,
  type Tool,
  TroupeError,
  type TroupeInput,
  type Author,
} from './troupe.ts';
import { type Company, readCompany } from './company.ts';
import {
  type ConversationRun,
  type RunPrompt,
  callsOf,
  type RunTurn,
  eventWords,
} from './conversation-run.ts';
import {
  importedMoves,
  importedTurns,
  isImported,
  recordedMoves,
  differenceOfSchedules,
  startOf,
  unknownSchedule,
  recordedTurns,
  type RecordedTurns,
} from './recorded-moves.ts';
import { playToItsEnd } from './play-conversation.ts';
import {
  recordedServers,
  withRecordedServers,
  type RecordedCall,
  type Recording,
  agentsOf,
} from './recording.ts';
import { type UserMove, person } from './users.ts';
import { MATCHERS } from './matchers.ts';

/** A recording, the moves of its people, and the run that it gave when it was tried. */
export interface RecordedTest {
  recording: Recording;
  moves: readonly UserMove[];
  run: ConversationRun;
}

/**
 * Makes a test of a conversation and plays it once. The test is returned only if the play used every recorded answer and
 * nothing else. Keys, and whatever the company's `redact` hides, are left out. Throws `command_refused`, and `config_invalid`
 * for a company that lacks an agent of the conversation.
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

/** Null if no obstacle is known. */
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

/** Null if the play equals the recorded run. */
function differenceOf(run: ConversationRun, { answers }: Recording, played: ConversationRun): string | null {
  const ofSchedules = differenceOfSchedules(run, played);
  if (ofSchedules) return ofSchedules;
  if (played.ended.kind === 'impossible') return played.ended.why;
  const asked = new Set(recordedTurns(played).answers.map(({ turn, step }) => `${turn} ${step}`));
  const left = answers.find(({ turn, step }) => !asked.has(`${turn} ${step}`));
  return left ? `nothing asks for step ${left.step} of ${left.turn}` : null;
}

/** A tool of the company or of a server that asked people something, which its replacement cannot do. */
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

/** Calls of the company's tools, with the arguments as the tools get them. Built-in tools run in tests too. */
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
    // Troupe refuses the call again, so the tool never runs.
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
    // The text is not JSON.
    return null;
  }
}

/** Paths that the test names, relative to its folder. */
interface Places {
  agents: string;
  recording: string;
}

const MOST_CLAIMS = 200;
const MOST_WORDS = 80;

/** The source text of a test of a recorded conversation: who was woken by whom, what was called, who said what. */
export function writeTest({ recording, moves, run }: RecordedTest, places: Places): string {
  const people = namesOf(moves);
  const used = [
    ...(moves.some(({ move }) => move === 'wait') ? ['minutesPass'] : []),
    ...(people.size > 0 ? ['person'] : []),
    'playConversation',
    'readRecording',
  ];
  const persons = [...people].map(([id, { name, author }]) => {
    const isPlain = person(id).name === author.name;
    return `const ${name} = person(${quote(id)}${isPlain ? '' : `, ${quote(author.name)}`});`;
  });
  const steps = moves.map((move) => `    ${stepText(move, people)},`);
  const claims = [...new Set(claimsOf(run))];
  const left = claims.length - MOST_CLAIMS;
  return `// Written by: troupe eval record ${recording.conversation}
import { expect, test } from 'vitest';
import { ${used.join(', ')} } from '@troupe/evals';

const company = new URL(${quote(places.agents)}, import.meta.url);
const recording = readRecording(new URL(${quote(places.recording)}, import.meta.url));
${persons.join('\n')}

test(${quote(recording.conversation)}, async () => {
  const people = [
${steps.join('\n')}
  ];
  const run = await playConversation(company, people, { recording });
${claims
  .slice(0, MOST_CLAIMS)
  .map((claim) => `  ${claim}`)
  .join('\n')}
${left > 0 ? `  // ${left} more are left out.\n` : ''}});
`;
}

type Names = ReadonlyMap<string, { name: string; author: Author }>;

function namesOf(moves: readonly UserMove[]): Names {
  const names = new Map<string, { name: string; author: Author }>();
  for (const move of moves) {
    if (!('by' in move) || names.has(move.by.id)) continue;
    const plain = move.by.id.replace(/\W/g, '_');
    const isTaken = [...names.values()].some(({ name }) => name === plain) || RESERVED.has(plain);
    names.set(move.by.id, {
      name: isTaken || /^\d/.test(plain) ? `person_${names.size + 1}_${plain}` : plain,
      author: move.by,
    });
  }
  return names;
}

/** Names that the test itself uses. */
const USED = 'expect test minutesPass person playConversation readRecording company recording people run';
/** Reserved words of ECMAScript, which cannot name a variable of a module. */
const KEYWORDS =
  'arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for function if implements import in instanceof interface let new null package private protected public return static super switch this throw true try typeof var void while with yield';
const RESERVED = new Set(`${USED} ${KEYWORDS}`.split(' '));

function stepText(move: UserMove, names: Names): string {
  if (move.move === 'wait') return `minutesPass(${move.minutes ?? 0})`;
  if (!('by' in move)) return '';
  const who = names.get(move.by.id)?.name ?? '';
  if (move.move === 'say') {
    const files = move.attachments?.map(({ name = '', mediaType }) => {
      const text = `Buffer.from(recording.files[${quote(name)}] ?? '')`;
      return `{ name: ${quote(name)}, mediaType: ${quote(mediaType)}, data: ${text} }`;
    });
    const options = {
      ...(move.to && { to: `[${move.to.map(quote).join(', ')}]` }),
      ...(files && { attachments: `[${files.join(', ')}]` }),
    };
    return `${who}.says(${withOptions(quote(move.content), options)})`;
  }
  if (move.move === 'answer') {
    const options = move.question === undefined ? {} : { question: quote(move.question) };
    return `${who}.answers(${withOptions(quote(move.content), options)})`;
  }
  const options = move.note === undefined ? {} : { note: quote(move.note) };
  const verb = move.move === 'approve' ? 'approves' : 'denies';
  return `${who}.${verb}(${withOptions(quote(move.tool ?? ''), options)})`;
}

function withOptions(first: string, options: Readonly<Record<string, string>>): string {
  const fields = Object.entries(options).map(([name, text]) => `${name}: ${text}`);
  return fields.length === 0 ? first : `${first}, { ${fields.join(', ')} }`;
}

/** Claims that the matchers confirm for this run. */
function claimsOf(run: ConversationRun): string[] {
  const calls = callsOf(run);
  return run.turns.flatMap((turn) => [
    ...wokenClaims(run, turn),
    ...calls
      .filter((call) => call.turn === turn)
      .flatMap(({ tool, args }) => calledClaims(run, turn, tool, args)),
    ...saidClaims(run, turn),
  ]);
}

function wokenClaims(run: ConversationRun, turn: RunTurn): string[] {
  return turn.inputs.slice(0, 1).flatMap((input) => {
    const cause = { by: input.author.id, with: beginning(eventWords(input)) };
    if (!MATCHERS.toHaveWoken(run, turn.agent, cause).pass) return [];
    return [
      `expect(run).toHaveWoken(${quote(turn.agent)}, { by: ${quote(cause.by)}, with: ${quote(cause.with)} });`,
    ];
  });
}

function calledClaims(run: ConversationRun, { agent }: RunTurn, tool: string, text: string): string[] {
  const args = objectOf(text);
  const shown = args && JSON.stringify(args).length <= MOST_WORDS ? args : undefined;
  if (!MATCHERS.toHaveCalled(run, agent, tool, shown).pass) return [];
  return [`expect(run).toHaveCalled(${quote(agent)}, ${quote(tool)}${shown ? `, ${literal(shown)}` : ''});`];
}

function saidClaims(run: ConversationRun, { agent, events }: RunTurn): string[] {
  return events.flatMap((event) => {
    if (event.kind !== 'message') return [];
    const words = beginning(event.body.content);
    if (words === '' || !MATCHERS.toHaveSaid(run, agent, words).pass) return [];
    return [`expect(run).toHaveSaid(${quote(agent)}, ${quote(words)});`];
  });
}

function beginning(text: string): string {
  const [line = ''] = text.split('\n', 1);
  return line
    .slice(0, MOST_WORDS)
    .toWellFormed()
    .replace(/\uFFFD$/, '');
}

function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    // The model did not write JSON.
    return null;
  }
}

function literal(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  const fields = Object.entries(value).map(([name, part]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) && name !== '__proto__' ? name : `[${quote(name)}]`;
    return `${key}: ${literal(part)}`;
  });
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}

/** A text as a TypeScript literal, in single quotes if that needs no escapes. */
function quote(text: string): string {
  const json = JSON.stringify(text).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
  return text.includes("'") ? json : `'${json.slice(1, -1).replaceAll('\\"', '"')}'`;
}
