import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseTroupe, type TroupeInput } from '../../src/library/config/agents-file.ts';
import { loadAgentsFile } from '../../src/library/config/load-agents-file.ts';
import type { TroupeError } from '../../src/base/errors.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import * as z from 'zod';
import { tempDir } from '../store/temp-dir.ts';
import { caller, isAlive, mcpRoom, stdioStage } from './mcp-stage.ts';
import { BUILTIN_TOOLS } from '../../src/tools/builtin/index.ts';

function problemsOf(tools: string[], mcpServers: unknown): string[] {
  try {
    parseTroupe({ agents: [caller('ana', tools, {})], mcpServers });
    return [];
  } catch (error) {
    return (error as TroupeError).data['problems'] as string[];
  }
}

const files = { command: 'x' };

test.each<[string, string[], unknown, string[]]>([
  ['a right one', ['files/*', 'web/a.b/c'], { files, web: { url: 'https://example.org/mcp' } }, []],
  [
    'an unknown server',
    ['fils/*'],
    { files },
    ['agents[0].tools[0]: there is no MCP server "fils"; did you mean "files"? known: files'],
  ],
  ['no servers at all', ['a/b'], undefined, ['agents[0].tools[0]: there is no MCP server "a"; known: none']],
  [
    'a tool that its server does not allow',
    ['files/raed'],
    { files: { ...files, tools: ['read', 'list'] } },
    [
      'agents[0].tools[0]: mcpServers.files.tools does not allow "raed"; did you mean "read"? known: read, list',
    ],
  ],
  [
    'a server without its tools',
    ['files'],
    { files },
    [
      `agents[0].tools[0]: there is no tool "files"; did you mean "files/*"? known: ${BUILTIN_TOOLS.join(', ')}, files/*`,
    ],
  ],
  ['neither a command nor a URL', [], { files: {} }, ['mcpServers.files.command: is missing']],
  [
    'both',
    [],
    { files: { url: 'http://a/', command: 'x' } },
    [
      'mcpServers.files.command: is not a field; there are url, headersEnv, oauth, tools, timeoutMs, previewBytes',
    ],
  ],
  [
    'a file as URL',
    [],
    { a: { url: 'file:///etc/passwd' } },
    ['mcpServers.a.url: this is an http or https URL'],
  ],
  [
    'a password in a URL',
    [],
    { a: { url: 'https://u:p@example.org/' } },
    ['mcpServers.a.url: a URL is no place for a password: use headersEnv'],
  ],
  [
    'a sign-in without credentials',
    [],
    { a: { url: 'https://a/', oauth: { issuer: 'https://b/', clientId: 'c' } } },
    ['mcpServers.a.oauth: give clientSecretEnv or privateKeyEnv, and not both'],
  ],
  [
    'an algorithm without a key',
    [],
    {
      a: {
        url: 'https://a/',
        oauth: { issuer: 'https://b/', clientId: 'c', clientSecretEnv: 'S', algorithm: 'ES256' },
      },
    },
    ['mcpServers.a.oauth.algorithm: an algorithm belongs to privateKeyEnv'],
  ],
  [
    'two ways to sign in',
    [],
    {
      a: {
        url: 'https://a/',
        headersEnv: { authorization: 'A' },
        oauth: { issuer: 'https://b/', clientId: 'c', clientSecretEnv: 'S' },
      },
    },
    ['mcpServers.a.headersEnv: the header Authorization is that of oauth: leave one of the two out'],
  ],
  [
    'a value as variable',
    [],
    { files: { ...files, env: ['A=1'] } },
    ['mcpServers.files.env[0]: this is the name of a variable'],
  ],
  [
    'an odd name',
    [],
    { 'my files': files },
    ['mcpServers.my files: a name must match /^[A-Za-z][A-Za-z0-9_-]{0,31}$/'],
  ],
])('%s is told with its path', (_, tools, servers, problems) => {
  expect(problemsOf(tools, servers)).toEqual(problems);
});

test('a server runs in the folder of its agents file', async () => {
  const dir = tempDir();
  const agents = [caller('ana', [], {})];
  const mcpServers = { here: files, there: { ...files, cwd: 'sub' }, away: { ...files, cwd: '/srv' } };
  writeFileSync(join(dir, 'agents.json'), JSON.stringify({ agents, mcpServers }));
  const { mcpServers: loaded } = await loadAgentsFile(join(dir, 'agents.json'));
  expect(loaded).toMatchObject({
    here: { cwd: dir },
    there: { cwd: join(dir, 'sub') },
    away: { cwd: '/srv' },
  });
});

async function refusal(input: Omit<TroupeInput, 'agents'>, tools: string[], env = {}): Promise<string> {
  const opened = createTroupe({ agents: [caller('ana', tools, {})], ...input }, { env });
  const error = await opened.then(
    async (troupe) => troupe.close().then(() => expect.unreachable('it started')),
    (thrown: TroupeError) => thrown,
  );
  expect(error).toMatchObject({ code: 'config_invalid' });
  return error.message;
}

test('each variable that is not set is refused before a server is started', async () => {
  const stage = stdioStage();
  const mcpServers = {
    good: stage.server(),
    unset: { command: 'x', env: ['NOT_SET'] },
    other: { url: 'http://127.0.0.1:1/', headersEnv: { 'X-Key': 'NOT_SET_EITHER' } },
  };
  const message = await refusal({ mcpServers }, ['good/*', 'unset/*', 'other/*']);
  expect(message.split('\n')).toEqual([
    '2 problem(s) with MCP servers:',
    '  mcpServers.unset.env: the variable NOT_SET is not set',
    '  mcpServers.other.headersEnv: the variable NOT_SET_EITHER is not set',
  ]);
  expect(stage.pids()).toEqual([]);
});

test('an unknown tool of a server is refused with the nearest name, and no process is left', async () => {
  const stage = stdioStage();
  expect(await refusal({ mcpServers: { files: stage.server() } }, ['files/ad'])).toContain(
    'agents[0].tools[0]: the MCP server "files" has no tool "ad"; did you mean "add"?',
  );
  const mcpServers = { files: { ...stage.server(), tools: ['add', 'bigg'] } };
  expect(await refusal({ mcpServers }, ['files/*'])).toContain(
    'mcpServers.files.tools: it has no tool "bigg"; did you mean "big"?',
  );
  expect(stage.pids().map(isAlive)).toEqual([false, false]);
});

test('of tools that models would call by one name, the first is offered, and a warning says so', async () => {
  const stage = stdioStage();
  const server = stage.server('colliding');
  const ana = caller('ana', ['files/*', 'files/files.read/all'], { sum: ['files__add', { a: 1, b: 1 }] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: server } });
  expect(room.warnings).toEqual([
    'mcpServers.files: of tools with one name the first is offered: "files.read/all" would be called "files__files_read_all", as files/files_read_all is; choose with `tools` of the server',
  ]);
  expect(await room.call('ana', 'sum')).toEqual({ outcome: 'done', content: '2' });
  const own = defineTool({ name: 'files__add', description: '', schema: z.object({}), run: () => '' });
  const mcpServers = { files: { ...server, tools: ['add', 'files.read/all'] } };
  expect(await refusal({ mcpServers, tools: [own] }, ['files/*'])).toContain(
    'tools: "files__add" is also the name of files/add',
  );
});

test('data that another process has open is reported before any server is started', async () => {
  const stage = stdioStage();
  const data = tempDir();
  const input = { agents: [caller('ana', ['files/*'], {})], mcpServers: { files: stage.server() } };
  await using _first = await createTroupe(input, { data });
  await expect(createTroupe(input, { data })).rejects.toMatchObject({ code: 'data_busy' });
  expect(stage.pids()).toHaveLength(1);
});
