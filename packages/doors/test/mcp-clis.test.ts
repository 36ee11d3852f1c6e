import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { codexEnv, findCodex, writeHome } from '../../agents/src/codex/config.ts';
import type { FakeReply } from '../../testing/src/fake-vendors.ts';
import { startFakeAnthropic, startFakeOpenAiResponses } from '../../testing/src/fake-vendors.ts';
import { CLI, type Workplace, workplace } from '../../../test/cli/harness.ts';
import { CLIS, HAS_CLAUDE_CODE, NO_CLAUDE_CODE, wordsOf } from '../../agents/test/claude-code-stage.ts';
import { CODEX_MODEL, NO_CODEX, transcriptOf } from '../../agents/test/codex-stage.ts';

const AGENTS = {
  doors: ['mcp'],
  agents: [
    {
      id: 'desk',
      description: 'Knows where every parcel is.',
      provider: 'scripted',
      model: 'test',
      script: { rules: [{ reply: 'Parcel 7 is in Bonn.' }] },
    },
  ],
};

/** How an MCP client starts the server. */
function serverIn({ dir }: Workplace): { command: string; args: string[] } {
  const args = [
    CLI,
    'mcp',
    path.join(dir, 'agents.json'),
    '--data',
    path.join(dir, 'data'),
    '--as',
    'Claudia',
  ];
  return { command: process.execPath, args };
}

async function delegated(place: Workplace): Promise<string> {
  const data = ['--data', path.join(place.dir, 'data')];
  const { out } = await place.run(['ls', ...data, '--json']);
  const { conversations } = JSON.parse(out) as { conversations: { id: string }[] };
  const { out: log } = await place.run(['export', conversations[0]?.id ?? '', ...data]);
  return log;
}

test.skipIf(!HAS_CLAUDE_CODE)(
  `Claude Code delegates to an agent through troupe mcp${HAS_CLAUDE_CODE ? '' : ` (${NO_CLAUDE_CODE})`}`,
  async () => {
    await using api = await startFakeAnthropic(({ number }) =>
      number === 1
        ? { calls: [{ name: 'mcp__desk__ask_desk', args: '{"message":"Where is parcel 7?"}' }] }
        : { text: 'The desk says: Bonn.' },
    );
    using place = workplace({ agents: AGENTS });
    const sdk = path.join(CLIS, 'node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs');
    const { query } = (await import(pathToFileURL(sdk).href)) as {
      query: (options: object) => AsyncIterable<{ type: string; result?: string }>;
    };
    const home = path.join(place.dir, 'home');
    mkdirSync(home);
    const { PATH = '' } = process.env;
    const going = query({
      prompt: 'Where is parcel 7?',
      options: {
        cwd: place.dir,
        model: 'claude-sonnet-4-5',
        tools: [],
        settingSources: [],
        strictMcpConfig: true,
        permissionMode: 'dontAsk',
        allowedTools: ['mcp__desk__ask_desk'],
        mcpServers: { desk: { type: 'stdio', ...serverIn(place) } },
        env: {
          PATH,
          HOME: home,
          ANTHROPIC_BASE_URL: api.url,
          ANTHROPIC_API_KEY: 'key-of-test',
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          CLAUDE_CODE_DISABLE_MCP_TASK_BACKGROUND: '1',
          DISABLE_TELEMETRY: '1',
          DISABLE_ERROR_REPORTING: '1',
          DISABLE_AUTOUPDATER: '1',
        },
      },
    });
    const results: (string | undefined)[] = [];
    for await (const message of going) if (message.type === 'result') results.push(message.result);
    expect(results).toEqual(['The desk says: Bonn.']);
    expect(JSON.stringify(api.requests[0]?.body)).toContain('Knows where every parcel is.');
    expect(wordsOf(api.requests[1] as never)).toContain('Parcel 7 is in Bonn.');
    expect(await delegated(place)).toMatch(/"name":"Claudia".*Where is parcel 7\?/);
  },
);

/** Codex calls an MCP server's tools by the names of the server and the tool. */
function namespacedCall(): FakeReply {
  const item = {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    namespace: 'mcp__desk',
    name: 'ask_desk',
    arguments: '{"message":"Where is parcel 7?"}',
    status: 'completed',
  };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const response = { id: 'resp_1', object: 'response', status: 'completed', output: [item], usage };
  const events = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress' } },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response },
  ];
  const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  return { raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body } };
}

test.skipIf(NO_CODEX !== '')(`Codex delegates to an agent through troupe mcp${NO_CODEX}`, async () => {
  await using api = await startFakeOpenAiResponses(({ number }) =>
    number === 1 ? namespacedCall() : { text: 'The desk says: Bonn.' },
  );
  using place = workplace({ agents: AGENTS });
  const settings = {
    home: path.join(place.dir, 'home'),
    env: {},
    baseUrl: api.url,
    apiKey: 'key-of-test',
    builtinTools: [],
    sandbox: 'read-only',
  } as const;
  const home = writeHome(settings);
  const { command, args } = serverIn(place);
  const config = [
    '[mcp_servers.desk]',
    `command = ${JSON.stringify(command)}`,
    `args = ${JSON.stringify(args)}`,
    'default_tools_approval_mode = "approve"',
    // The first request waits for the server.
    'required = true',
  ];
  appendFileSync(path.join(home, 'config.toml'), `${config.join('\n')}\n`);
  const codex = findCodex();
  const exec = ['exec', '--json', '--skip-git-repo-check', '--model', CODEX_MODEL, 'Where is parcel 7?'];
  const child = spawn(codex.command, [...codex.args, ...exec], {
    cwd: place.dir,
    env: codexEnv(settings, home),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const out = await readText(child.stdout);
  expect(out).toContain('The desk says: Bonn.');
  expect(JSON.stringify(api.requests[0]?.body)).toContain('Knows where every parcel is.');
  expect(transcriptOf(api.requests[1])).toContain('Parcel 7 is in Bonn.');
  expect(await delegated(place)).toMatch(/"name":"Claudia".*Where is parcel 7\?/);
});
