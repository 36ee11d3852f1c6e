import { existsSync } from 'node:fs';
import { text as readAll } from 'node:stream/consumers';
import type { TroupeInput } from '../../library/config/agents-file.ts';
import { systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { nearestName } from '../../events/index.ts';
import {
  type AgentKey,
  type AgentKeys,
  loadNostr,
  type NostrStatus,
  type RelayAnswer,
  type RelayReport,
} from '../../library/integrations/nostr.ts';
import { DEFAULT_DATA, type ClientOptions, connect } from '../client/connect.ts';
import { findAgents, recallAgents } from '../process/find-agents.ts';
import { clip, paint, print, printJson, table } from '../render/output.ts';
import type { UrlOptions } from '../process/operator-flags.ts';

interface KeyOptions extends Partial<UrlOptions> {
  data?: string;
  agents?: string;
  json?: boolean;
}

export async function createKey(agent: string, options: KeyOptions): Promise<void> {
  await withKeys(options, agent, async (keys) => showMade('created', await keys.create(agent), options));
}

/** Reads the key from a variable or stdin, because other users see command lines, and shells keep them in histories. */
export async function importKey(agent: string, options: KeyOptions & { env?: string }): Promise<void> {
  await withKeys(options, agent, async (keys) => {
    const secret = options.env === undefined ? await readInput() : readVariable(options.env);
    showMade('imported', await keys.import(agent, secret), options);
  });
}

export async function listKeys(options: KeyOptions): Promise<void> {
  requireDataDir(options);
  await withKeys(options, null, async (keys) => {
    const found = await keys.list();
    if (options.json) return printJson({ keys: found });
    if (found.length === 0) return print('no agent has a key; create one with "troupe nostr keys create"');
    const head = ['agent', 'npub', 'since'].map((title) => paint('dim', title));
    print(table([head, ...found.map(({ agent, npub, createdAt }) => [agent, npub, createdAt.slice(0, 10)])]));
  });
}

export async function exportKey(
  agent: string,
  options: KeyOptions & { showSecret?: boolean },
): Promise<void> {
  if (!options.showSecret) {
    const message = `this prints the secret key of @${agent}, and anyone who has it can speak as @${agent}: add --show-secret to confirm`;
    throw new TroupeError('command_refused', message, { agent });
  }
  requireDataDir(options);
  await withKeys(options, null, async (keys) => {
    const nsec = await keys.export(agent, { confirmed: true });
    if (options.json) printJson({ agent, nsec });
    else print(nsec);
  });
}

export async function removeKey(agent: string, options: KeyOptions & { yes?: boolean }): Promise<void> {
  if (!options.yes) {
    const message = `without this key @${agent} can never speak under this pubkey again, unless you have exported it: add --yes to confirm`;
    throw new TroupeError('command_refused', message, { agent });
  }
  requireDataDir(options);
  await withKeys(options, null, async (keys) => {
    await keys.remove(agent);
    if (options.json) printJson({ agent, removed: true });
    else print(`the key of @${agent} is removed`);
  });
}

export async function testRelay(url: string, options: { json?: boolean }): Promise<void> {
  const nostr = await loadNostr();
  const report = await nostr.probeRelay(url, { clock: systemClock });
  const isWell = report.read.ok && report.write.ok;
  if (options.json) printJson({ ok: isWell, ...report });
  else print(renderReport(report));
  if (!isWell) process.exitCode = 1;
}

/** Shows the relays of a running server. A worker may hold only some of them; `troupe serve` holds none. */
export async function showStatus(options: ClientOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    const nostr = await client.nostr();
    if (options.json) return printJson({ nostr });
    if (!nostr) return print('no relays: the agents file has no "nostr", or this process takes no turns');
    const head = ['relay', 'state', 'received', 'rejected', 'published', 'behind', 'last problem'];
    const rows = nostr.relays.map(({ url, state, inbound, received, rejected, outbox, lastError }) => {
      const isElsewhere = inbound?.state === 'waiting' && state !== 'isolated';
      const held = isElsewhere ? 'held by another process' : '';
      return [
        url,
        isElsewhere ? 'waiting' : state,
        String(received),
        String(countRejected(rejected)),
        String(outbox?.published ?? '-'),
        String(outbox?.behind ?? '-'),
        clip(lastError ?? outbox?.lastError ?? held, 60),
      ];
    });
    print(table([head.map((title) => paint('dim', title)), ...rows]));
    const agents = Object.entries(nostr.agents).map(([agent, pubkey]) => `@${agent} ${pubkey}`);
    print(paint('dim', agents.join('\n')));
  } finally {
    await client.close();
  }
}

/** Number of rejected events without echoes: every relay returns our agents' own events. */
function countRejected({ echo: _ours, ...rejected }: NostrStatus['relays'][number]['rejected']): number {
  return Object.values(rejected).reduce<number>((sum, count = 0) => sum + count, 0);
}

/** Throws `config_invalid` if the data directory does not exist: commands that only read do not create it. */
function requireDataDir(options: KeyOptions): void {
  const { data = DEFAULT_DATA } = options;
  if (isOnServers(options) || existsSync(data)) return;
  const message = `there is no data directory ${data}; name it with --data`;
  throw new TroupeError('config_invalid', message, { data });
}

function isOnServers({ mongodb, postgres, redis }: KeyOptions): boolean {
  return (mongodb ?? postgres ?? redis) !== undefined;
}

async function withKeys(
  options: KeyOptions,
  named: string | null,
  work: (keys: AgentKeys) => Promise<void>,
): Promise<void> {
  const dir = options.data ?? DEFAULT_DATA;
  const isDistributed = isOnServers(options);
  const found = (await findAgents(options.agents)) ?? (isDistributed ? null : await recallAgents(dir));
  const definition: TroupeInput = found?.definition ?? { agents: [] };
  if (named !== null && definition.agents.length > 0) requireKnownAgent(named, definition);
  const { createTroupe } = await import('../../library/runtime/create-troupe.ts');
  const where = isDistributed
    ? (await import('../process/operator-flags.ts')).readServiceUrls(
        { prefix: 'troupe', ...options },
        process.env,
      )
    : { data: dir };
  await using troupe = await createTroupe(definition, { ...where, work: false, allowEmpty: true });
  await work(troupe.agentKeys);
}

/** Throws `agent_unknown`, because a key under a misspelt name would be useless. */
function requireKnownAgent(agent: string, { agents, templates = [] }: TroupeInput): void {
  const known = [...agents, ...templates].map(({ id }) => String(id));
  if (known.includes(agent)) return;
  const nearest = nearestName(agent, known);
  const hint = nearest ? ` Did you mean "${nearest}"?` : '';
  throw new TroupeError('agent_unknown', `there is no agent "${agent}".${hint} Known: ${known.join(', ')}.`, {
    agent,
    nearest,
    known,
  });
}

async function readInput(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('The key, as nsec1… or hex, then Ctrl-D: ');
  return readAll(process.stdin);
}

function readVariable(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new TroupeError('config_invalid', `the variable ${name} is not set`, { variable: name });
}

function showMade(how: string, key: AgentKey, { json }: KeyOptions): void {
  if (json) return printJson(key);
  print(`key ${how} for @${key.agent}; it is stored encrypted`);
  print(
    table(
      [
        ['npub', key.npub],
        ['pubkey', key.pubkey],
      ].map(([name = '', value = '']) => [`  ${paint('dim', name)}`, value]),
    ),
  );
}

const AUTH = {
  none: 'not required',
  offered: 'offered, but not required',
  required: 'required (NIP-42); agents log in automatically',
} as const;

export function renderReport({ url, connectMs, information, read, write, auth }: RelayReport): string {
  const about = [information?.name, information?.software, information?.version].filter(Boolean).join(', ');
  const nips = information?.supported_nips?.join(' ') ?? '';
  const rows = [
    ['connect', `${Math.round(connectMs)} ms`],
    ['read', renderAnswer(read, paint('red', 'not answered'))],
    // Some relays acknowledge only events that they store, and do not store the test event.
    ['write', renderAnswer(write, paint('yellow', 'neither acknowledged nor refused'))],
    ['login', AUTH[auth]],
    ['about', about === '' ? 'no information given' : clip(about, 90)],
    ...(nips === '' ? [] : [['nips', clip(nips, 90)]]),
  ];
  return [
    paint('bold', url),
    table(rows.map(([name = '', value = '']) => [`  ${paint('dim', name)}`, value])),
  ].join('\n');
}

/** `silence`: what to print if the relay did not answer. */
function renderAnswer({ ok, ms, reason, isSilent }: RelayAnswer, silence: string): string {
  if (ok) return `${Math.round(ms)} ms`;
  if (isSilent) return `${silence}: ${clip(reason, 90)}`;
  return paint('red', `refused: ${clip(reason === '' ? 'no reason given' : reason, 90)}`);
}
