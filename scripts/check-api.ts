import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createMetrics } from '../src/http/metrics.ts';
import { createApp, serveHttp } from '../src/http/api/index.ts';
import { DOORS } from '../src/library/integrations/door.ts';
import { createTroupe } from '../src/library/runtime/create-troupe.ts';

/**
 * `npm run check:api [-- --examples 30 --seed 1 --venv FOLDER]`: serves an embedded troupe on 127.0.0.1, checks its OpenAPI
 * document with `openapi-spec-validator`, and sends it the requests that `schemathesis` derives from the document. Both
 * are installed from PyPI into `--venv`, which is kept, or into a temporary folder. Exits with 1 for each finding
 * that is not in `EXPLAINED`. Node itself refuses a head above 16 KiB, with 431 and no body, so that of the script may be larger.
 */
const { values } = parseArgs({
  options: {
    examples: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    venv: { type: 'string' },
  },
});

/** Operations that refuse, with 400, what fits their schema; and the rule that a schema cannot state. */
const EXPLAINED: Readonly<Record<string, string>> = {
  sendMessage:
    'the agents in `to` must exist; a message for people only has no addressee; an attachment has data with a media type, or a url',
  sendCommand: 'the agent must exist; a fork names a turn, or a conversation and a seq',
  chat: 'the agents in `to` must exist, and the newest message is one that may be answered',
  runThread: 'the agent in `to` must exist, and the payload is one that its interrupt asks for',
  runConversation: 'as for runThread',
  completeInNewConversation: 'the agent must exist, and the last message is one of the user',
  completeInConversation: 'as for completeInNewConversation',
  respond: 'the agent must exist, and so must the answer that `previous_response_id` names',
  respondInConversation: 'as for respond',
  comparePrompts: 'both turns must be of one agent in one conversation',
  importTranscript: 'the file must have a known format',
  createKey: '`expiresAt` must be in the future',
  createWebhook: 'only a URL parser knows all rules of hosts',
  setPerson: 'the names of time zones, and classes of Unicode',
  readAttachment: 'the event must have the attachment',
  getAnswer: 'the event must be one that agents answer',
  getInbox: '`after` is the `next` of a page in the same order',
  searchConversations: '`after` is the `next` of an answer to the same query',
  callAgent: 'the agent must exist',
};
/** Operations for which a conversation that was deleted is one that has not begun. */
const NOT_BEGUN = ['listChatMessages', 'resumeChat', 'resumeChatById', 'listModelsOfConversation'];
/** JSON-RPC answers 200 to a request that is none, with an error in it. */
const REFUSES_INSIDE = ['callAgent'];
/** An event stream does not end. */
const ENDLESS = 'streamEvents';
/** 413: a body has a limit of bytes and of values, as well. */
const ACCEPTED = ['2xx', '3xx', '400', '401', '403', '404', '409', '413', '429', '5xx'];
const REFUSED = ['400', '401', '403', '404', '405', '406', '409', '413', '415', '422', '428', '429', '5xx'];

const AGENTS = [
  { id: 'writer', provider: 'scripted', model: 'test', script: { rules: [{ reply: 'Answer {{n}}.' }] } },
] as const;
const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;

const scratch = mkdtempSync(path.join(tmpdir(), 'troupe-check-api-'));
try {
  process.exitCode = await main();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function main(): Promise<number> {
  const bin = path.join(await openVenv(values.venv ?? path.join(scratch, 'venv')), 'bin');
  const token = randomBytes(32).toString('hex');
  await using troupe = await createTroupe({ agents: [...AGENTS], doors: DOORS }, { onWarning: () => {} });
  await troupe.send('main', { author: ANA, to: ['writer'], content: 'Hello' });
  await troupe.idle();
  const app = createApp(troupe, {
    token,
    authenticate: (credential) => troupe.authenticate(credential),
    keyless: 'refused',
    metrics: createMetrics({ version: 'check' }),
    traffic: { requestsPerSecond: 1e6, messagesPerSecond: 1e6, workPerSecond: 1e9 },
  });
  const server = await serveHttp(app, { port: 0 });
  try {
    const document = path.join(scratch, 'openapi.json');
    const at = `${server.url}/api/openapi.json`;
    const answer = await fetch(at, { headers: { authorization: `Bearer ${token}` } });
    writeFileSync(document, await answer.text());
    const valid = await run(path.join(bin, 'openapi-spec-validator'), [document]);
    writeFileSync(path.join(scratch, 'schemathesis.toml'), configOf(token));
    const options = ['--url', server.url, '--max-examples', values.examples, '--seed', values.seed];
    const found = await run(path.join(bin, 'schemathesis'), ['run', document, ...options]);
    return valid === 0 && found === 0 ? 0 : 1;
  } finally {
    await server.close();
  }
}

/** Without a header of ours, schemathesis can leave the credential out and expect 401. */
function configOf(token: string): string {
  const operations = Object.keys(EXPLAINED).map(
    (id) => `
[[operations]]
include-operation-id = "${id}"
warnings = false
[operations.checks]
positive_data_acceptance.expected-statuses = ${JSON.stringify(ACCEPTED)}
${REFUSES_INSIDE.includes(id) ? 'negative_data_rejection.enabled = false' : ''}
`,
  );
  const unbegun = NOT_BEGUN.map(
    (id) => `
[[operations]]
include-operation-id = "${id}"
checks.use_after_free.enabled = false
`,
  );
  return `continue-on-failure = true
request-timeout = 30
[checks]
negative_data_rejection.expected-statuses = ${JSON.stringify(REFUSED)}
[auth.openapi]
bearer = { bearer = "${token}" }
[[operations]]
include-operation-id = "${ENDLESS}"
enabled = false
${operations.join('')}${unbegun.join('')}`;
}

async function openVenv(folder: string): Promise<string> {
  if (existsSync(path.join(folder, 'bin/schemathesis'))) return folder;
  mkdirSync(folder, { recursive: true });
  const packages = ['schemathesis>=4.32,<5', 'openapi-spec-validator>=0.9,<1'];
  for (const [command, ...args] of [
    ['python3', '-m', 'venv', folder],
    [path.join(folder, 'bin/pip'), 'install', '--quiet', ...packages],
  ] as [string, ...string[]][])
    if ((await run(command, args)) !== 0) throw new Error(`${command} ${args.join(' ')} failed`);
  return folder;
}

function run(command: string, args: readonly string[]): Promise<number> {
  const child = spawn(command, args, { cwd: scratch, stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });
}
