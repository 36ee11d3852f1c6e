import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

interface Elicited {
  action: 'accept' | 'decline';
  content?: Record<string, string | boolean>;
}

/** What the client's user answers, by the message that asks. */
type Elicit = (message: string) => Elicited | Promise<Elicited>;

export interface McpClientOptions {
  /** The protocol: of 2026, or with the handshake of 2025. */
  era?: 'modern' | 'legacy';
  elicit?: Elicit;
}

/** The independent client of the protocol. */
function clientWith({ era = 'modern', elicit }: McpClientOptions): Client {
  const client = new Client(
    { name: 'test', version: '1' },
    {
      versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' },
      capabilities: elicit ? { elicitation: { form: {} } } : {},
    },
  );
  if (elicit)
    client.setRequestHandler('elicitation/create', async ({ params }) => ({
      ...(await elicit(params.message)),
    }));
  return client;
}

export async function overHttp(
  url: string,
  { headers = {}, ...options }: McpClientOptions & { headers?: Record<string, string> } = {},
): Promise<Client> {
  const client = clientWith(options);
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${url}/api/mcp`), { requestInit: { headers } }),
  );
  return client;
}

/** Starts the server as a program, as MCP clients do. */
export async function overStdio(
  command: { command: string; args: string[]; cwd: string; env?: Record<string, string> },
  options: McpClientOptions = {},
): Promise<Client> {
  const client = clientWith(options);
  await client.connect(new StdioClientTransport({ ...command, stderr: 'pipe' }));
  return client;
}

/** The texts of a result, joined. */
export function textOf(result: { content?: unknown }): string {
  const blocks = (result.content ?? []) as { text?: string }[];
  return blocks.map(({ text }) => text ?? '').join('\n');
}
