import { readFile } from 'node:fs/promises';
import { TroupeError } from '../../base/errors.ts';
import {
  type CommandOf,
  type ConversationId,
  isAbout,
  parseTurnId,
  type RerunChange,
  type TurnId,
} from '../../events/index.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { authorNamed, type Client } from '../client/client.ts';
import { onInterrupt } from '../process/terminal.ts';
import {
  print,
  printJson,
  clip,
  count,
  isPainted,
  number,
  paint,
  printable,
  screenWidth,
  table,
} from '../render/output.ts';
import type { CallPair, ComparedCall, ComparedTurn, TurnComparison } from '../../library/troupe.ts';

interface RerunOptions extends ClientOptions {
  message?: string;
  instructions?: string;
  model?: string;
  provider?: string;
  result?: string;
  tools?: 'recorded' | 'run';
  asConversation?: string;
  as?: string;
  wait?: boolean;
}

/** Runs a turn again in a fork, and shows both side by side. Without a server it always waits for the turn. */
export async function rerun(turn: string, options: RerunOptions): Promise<void> {
  const parts = parseTurnId(turn);
  if (!parts) throw new TroupeError('turn_unknown', `there is no turn "${turn}"`, { turn });
  const change = await changeOf(options);
  const author = authorNamed(options.as);
  const command: CommandOf<'rerun'> = {
    command: 'rerun',
    turn: turn as TurnId,
    ...(change && { change }),
    ...(options.tools && { tools: options.tools }),
    ...(options.asConversation !== undefined && { as: options.asConversation as ConversationId }),
  };
  const client = await connect(options, { needs: 'work' });
  const stop = new AbortController();
  const dispose = onInterrupt(() => stop.abort());
  try {
    const event = await client.command(command, author);
    const fork = event.kind === 'command' ? event.body.fork?.conversation : undefined;
    const made = `${fork}:${parts.agent}:${parts.number}`;
    if (!client.isDirect && !options.wait) {
      if (options.json) printJson({ event, turn: made });
      else print(`${made} runs ${turn} again; when it has ended: troupe compare ${turn} ${made}`);
      return;
    }
    if (fork !== undefined) await waitForEnd(client, fork, made, stop.signal);
    await showComparison(client, turn, made, options);
  } finally {
    stop.abort();
    await client.close();
    dispose();
  }
}

export async function compare(a: string, b: string, options: ClientOptions): Promise<void> {
  const client = await connect(options, { needs: 'names' });
  try {
    await showComparison(client, a, b, options);
  } finally {
    await client.close();
  }
}

async function showComparison(client: Client, a: string, b: string, { json }: ClientOptions): Promise<void> {
  const found = await client.compare(a, b);
  if (json) printJson(found);
  else print(renderComparison(found));
}

async function waitForEnd(client: Client, fork: string, turn: string, signal: AbortSignal): Promise<void> {
  for await (const frame of client.follow(fork, 0, signal))
    if (frame.type === 'event' && frame.event.turn === turn && isAbout(frame.event, 'turnEnd')) return;
}

/** Throws `config_invalid` if there is more than one change. */
async function changeOf(options: RerunOptions): Promise<RerunChange | null> {
  const { message, instructions, model, provider, result } = options;
  const given = Object.entries({ message, instructions, model, result }).filter(
    ([, value]) => value !== undefined,
  );
  if (given.length > 1) {
    const names = given.map(([name]) => `--${name}`).join(' and ');
    throw new TroupeError('config_invalid', `change one thing at a time: ${names} are given`);
  }
  if (provider !== undefined && model === undefined)
    throw new TroupeError('config_invalid', '--provider needs --model');
  if (message !== undefined) return { kind: 'message', content: message };
  if (instructions !== undefined) return { kind: 'instructions', text: await textOf(instructions) };
  if (model !== undefined) return { kind: 'model', model, ...(provider !== undefined && { provider }) };
  if (result === undefined) return null;
  const at = result.lastIndexOf('=');
  if (at < 1) throw new TroupeError('config_invalid', '--result is CALL=FILE: the id of a call, and a file');
  return { kind: 'toolResult', call: result.slice(0, at), result: await textOf(result.slice(at + 1)) };
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new TroupeError('config_invalid', `cannot read ${path}`, { file: path }, { cause });
  }
}

/** Two turns side by side as text: what they cost, their calls, and their texts with the differences. */
function renderComparison({ a, b, rerun, calls, omitted, words }: TurnComparison): string {
  const changed = rerun ? (rerun.change?.kind ?? 'nothing') : null;
  return [
    ...(changed === null ? [] : [`changed: ${changed}; tools: ${rerun?.tools}`]),
    table([['', paint('bold', a.turn), paint('bold', b.turn)], ...rowsOf(a, b)]),
    ...(calls.length > 0 ? [table(calls.map(rowOf))] : []),
    ...(omitted > 0 ? [paint('dim', `… and ${count(omitted, 'more call')}`)] : []),
    words.map(({ change, text }) => wordsIn(change, printable(text))).join(''),
  ].join('\n\n');
}

function rowsOf(a: ComparedTurn, b: ComparedTurn): string[][] {
  const row = (name: string, of: (turn: ComparedTurn) => string) => [paint('dim', name), of(a), of(b)];
  return [
    row('state', ({ status, problem }) => (problem === null ? status : `${status}: ${clip(problem, 60)}`)),
    row('model', ({ model }) => model ?? '-'),
    row('steps', ({ steps }) => number(steps)),
    row('tokens in', ({ usage }) => `${number(usage.input)} (${number(usage.cacheRead)} cached)`),
    row('tokens out', ({ usage }) => number(usage.output)),
    row('cost', ({ cost }) => (cost === null ? '-' : `$${cost.toFixed(cost < 0.01 ? 6 : 4)}`)),
    row('time', ({ ms }) => (ms === null ? '-' : `${number(ms)} ms`)),
  ];
}

function rowOf({ name, same, a, b }: CallPair): string[] {
  const width = Math.max(24, Math.floor((screenWidth() - 24) / 2));
  const shown = (call: ComparedCall | null) =>
    call ? clip(`${call.args} → ${call.outcome ?? 'no result'}: ${call.result}`, width) : '-';
  return [same ? '=' : paint('yellow', '≠'), name, shown(a), shown(b)];
}

function wordsIn(change: 'equal' | 'removed' | 'added', text: string): string {
  if (change === 'equal') return text;
  const isRemoved = change === 'removed';
  if (isPainted()) return paint(isRemoved ? ['red', 'strikethrough'] : 'green', text);
  return isRemoved ? `[-${text}-]` : `{+${text}+}`;
}
