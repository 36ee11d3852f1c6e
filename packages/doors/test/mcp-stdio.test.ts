import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { CLI, workplace } from '../../../test/cli/harness.ts';
import { overStdio, textOf } from './mcp-client.ts';
import { openStage, PAY, PAYS } from './stage.ts';

/** The server does not report changes of these lists. */
const SAYS_NOTHING = { tools: { listChanged: false }, resources: { listChanged: false } };

const COMPANY = {
  doors: ['mcp'],
  agents: [
    {
      id: 'desk',
      description: 'Knows every parcel.',
      provider: 'scripted',
      model: 'test',
      script: { rules: [{ reply: 'It is in Bonn.' }] },
    },
  ],
};

test.each(['modern', 'legacy'] as const)(
  'troupe mcp serves the agents file at stdin and stdout: %s',
  async (era) => {
    using place = workplace({ agents: COMPANY });
    const client = await overStdio(
      { command: process.execPath, args: [CLI, 'mcp', '--as', 'Ana'], cwd: place.dir },
      { era },
    );
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('ask_desk');
    expect(client.getServerCapabilities()).toMatchObject(SAYS_NOTHING);
    const result = await client.callTool({ name: 'ask_desk', arguments: { message: 'Where is it?' } });
    expect(textOf(result)).toContain('It is in Bonn.');
    const { conversation } = result.structuredContent as { conversation: string };
    await client.close();
    const { out } = await place.run(['ls', conversation]);
    expect(out).toContain('desk');
  },
);

test.each(['modern', 'legacy'] as const)(
  'troupe mcp passes requests on to a running server: %s',
  async (era) => {
    await using stage = await openStage(['bo'], {
      isKeyed: true,
      tools: [PAY],
      agents: { bo: { tools: ['pay'] } },
      answers: { bo: [PAYS, 'Paid.', 'Again.'] },
    });
    const { secret } = await stage.troupe.keys.create({ name: 'k', scopes: ['read', 'write'] });
    using place = workplace();
    const asked: string[] = [];
    const client = await overStdio(
      {
        command: process.execPath,
        args: [CLI, 'mcp', '--url', stage.url],
        cwd: place.dir,
        env: { TROUPE_KEY: secret },
      },
      {
        era,
        elicit(message) {
          asked.push(message);
          return { action: 'accept', content: { approved: true } };
        },
      },
    );
    const lines: (string | undefined)[] = [];
    const result = await client.callTool(
      { name: 'ask_bo', arguments: { message: 'Pay.' } },
      { onprogress: ({ message }) => void lines.push(message) },
    );
    expect(result.structuredContent).toMatchObject({ status: 'answered', text: 'Paid.' });
    expect(asked).toEqual(['@bo wants to call pay {"euros":5}']);
    expect(client.getServerCapabilities()).toMatchObject(SAYS_NOTHING);
    // The client drops progress that arrives together with the result.
    expect(lines).toContain('bo calls pay');
    const { conversation } = result.structuredContent as { conversation: string };
    const { contents } = await client.readResource({ uri: `troupe://conversations/${conversation}` });
    expect(JSON.stringify(contents)).toContain('Paid.');
    await client.close();
  },
);

test('a ping without a revision says nothing of the requests around it', async () => {
  using place = workplace({ agents: COMPANY });
  const child = spawn(process.execPath, [CLI, 'mcp'], { cwd: place.dir, stdio: ['pipe', 'pipe', 'ignore'] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  let id = 0;
  async function ask(method: string, params?: object): Promise<unknown> {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: (id += 1), method, params })}\n`);
    return JSON.parse(String((await lines.next()).value));
  }
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  try {
    expect(await ask('ping')).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
    const complete = { result: { resultType: 'complete' } };
    expect(await ask('server/discover', { _meta })).toMatchObject(complete);
    expect(await ask('ping')).toEqual({ jsonrpc: '2.0', id: 3, result: {} });
    expect(await ask('tools/list', { _meta })).toMatchObject(complete);
    expect(await ask('ping', { _meta })).toMatchObject(complete);
  } finally {
    child.stdin.end();
    await once(child, 'close');
  }
});
