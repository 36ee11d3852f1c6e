/** A malicious MCP server over stdio, in a separate process. The argument selects its behaviour. */
import { createInterface } from 'node:readline';

const [manner = ''] = process.argv.slice(2);
const ANY = { type: 'object' };
const tool = (name: string, more: object = {}) => ({ name, inputSchema: ANY, ...more });

/** Placeholder for a nesting depth that JSON.stringify cannot write. */
const DEEP = '@deep@';
const LEVELS = 20_000;
const deepened = (json: string) =>
  json.replace(`"${DEEP}"`, () => '{"items":'.repeat(LEVELS) + '{}' + '}'.repeat(LEVELS));

const LISTS: Readonly<Record<string, () => object[]>> = {
  deep: () => [tool('abyss', { inputSchema: { type: 'object', properties: { a: DEEP } } })],
  many: () => Array.from({ length: 5_000 }, (_, index) => tool(`tool${index}`)),
  'long name': () => [tool('n'.repeat(5_000))],
  'long description': () => [tool('novel', { description: 'd'.repeat(1_000_000) })],
  'wide schema': () => [
    tool('wide', {
      inputSchema: {
        type: 'object',
        properties: Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`p${index}`, ANY])),
      },
    }),
  ],
  twins: () => Array.from({ length: 900 }, () => tool('twin')),
};

function write(message: object): void {
  process.stdout.write(`${deepened(JSON.stringify({ jsonrpc: '2.0', ...message }))}\n`);
}

function answer(id: unknown, result: object): void {
  write({ id, result });
}

const said = (text: string) => ({ content: [{ type: 'text', text }] });

async function flood(line: string, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1)
    if (!process.stdout.write(line)) await new Promise((resolve) => process.stdout.once('drain', resolve));
}

const notice = (method: string, params: object = {}) =>
  `${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`;

async function call(id: unknown): Promise<void> {
  switch (manner) {
    case 'changes':
      await flood(notice('notifications/tools/list_changed'), 1_500);
      return answer(id, said('changed'));
    case 'notices':
      return flood(notice('notifications/message', { level: 'info', data: 'x' }), 1e6);
    case 'progress':
      return flood(notice('notifications/progress', { progressToken: 1, progress: 1 }), 1e6);
    case 'requests':
      return flood(
        `${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'sampling/createMessage', params: {} })}\n`,
        1e6,
      );
    case 'garbage':
      return flood('not a message at all\n', 1e6);
    case 'empty lines':
      return flood('\n'.repeat(100), 1e6);
    case 'answers':
      return flood(`${JSON.stringify({ jsonrpc: '2.0', id: 999_999, result: {} })}\n`, 1e6);
    case 'line':
      return flood('x'.repeat(65_536), 2_000);
    case 'some garbage':
      process.stdout.write('\u0000\u001b[2J{"jsonrpc":"2.0","id":\n{}\n[]\nnull\n{"jsonrpc":"1.0"}\n');
      process.stderr.write('e'.repeat(5_000_000));
      for (const other of [id, 12_345, -1, 'x', null])
        write({ id: other === id ? 98_765 : other, result: {} });
      return answer(id, said('still here'));
    case 'parts':
      return answer(id, { content: Array.from({ length: 100_000 }, () => ({ type: 'text', text: 'p' })) });
    case 'deep result':
      return void process.stdout.write(
        `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[],"structuredContent":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}}\n`,
      );
    case 'mute':
      return;
    case 'dies':
      process.exit(9);
      return;
    default:
      return answer(id, said('fine'));
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line) as { id?: unknown; method?: string };
  if (method === 'initialize') {
    const serverInfo = { name: 'hostile', version: '1' };
    const capabilities = { tools: { listChanged: true }, logging: {} };
    answer(id, { protocolVersion: '2025-03-26', capabilities, serverInfo });
  }
  if (method === 'tools/list' && manner === 'pages') answer(id, { tools: [], nextCursor: 'again' });
  else if (method === 'tools/list') answer(id, { tools: (LISTS[manner] ?? (() => [tool('go')]))() });
  if (method === 'tools/call') void call(id);
});
