/**
 * node examples/client/ask.ts ["QUESTION"] [--refuse]
 *
 * Asks the company at TROUPE_URL, with TROUPE_KEY if it needs a key.
 */
import { parseArgs } from 'node:util';
import { createTroupeClient } from '@troupe/client';

const { values, positionals } = parseArgs({
  options: { refuse: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const { TROUPE_URL: url = 'http://127.0.0.1:4600', TROUPE_KEY: token } = process.env;
const troupe = createTroupeClient({ url, token });
const conversation = `ask-${crypto.randomUUID()}`;
const message = positionals[0] ?? 'I was charged twice.';

let [speaker, seen] = ['', 0];
for await (const part of troupe.stream(conversation, message)) {
  if (part.type === 'event') seen = part.event.seq;
  if (part.type !== 'text') continue;
  if (part.agent !== speaker) process.stdout.write(`\n${part.agent}: `);
  process.stdout.write(part.text);
  speaker = part.agent;
}
console.log();
for (const task of await troupe.tasks(conversation, { open: true })) {
  if (task.kind !== 'approval') continue;
  console.log(`${values.refuse ? 'refused' : 'approved'}: ${task.tool} ${task.args}`);
  await troupe.decide(conversation, task, { approved: !values.refuse });
  for await (const frame of troupe.follow(conversation, { after: seen })) {
    if (frame.type !== 'event') continue;
    const { seq, kind, author, body } = frame.event;
    seen = seq;
    if (kind === 'message') console.log(`${author.name}: ${body.content}`);
    if (kind === 'turn.done' || kind === 'turn.failed') break;
  }
}
