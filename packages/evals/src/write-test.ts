import type { Author } from './troupe.ts';
import { callsOf, type ConversationRun, type RunTurn } from './conversation-run.ts';
import { eventWords } from './event-words.ts';
import { MATCHERS } from './matchers.ts';
import { person } from './person.ts';
import type { RecordedTest } from './record-test.ts';
import type { UserMove } from './user.ts';

/** Paths as the test names them, relative to its folder. */
interface Places {
  agents: string;
  recording: string;
}

const MOST_CLAIMS = 200;
const MOST_WORDS = 80;

/** The text of a test of a recorded conversation: who was woken by whom, what was called, who said what. */
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
/** Words that no variable of a module can have as its name, by ECMAScript. */
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

/** Only what the matchers find in the run. */
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
    // The model wrote no JSON.
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

/** A text as TypeScript, in single quotes where that needs no escapes. */
function quote(text: string): string {
  const json = JSON.stringify(text).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
  return text.includes("'") ? json : `'${json.slice(1, -1).replaceAll('\\"', '"')}'`;
}
