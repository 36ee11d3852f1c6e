import { AGENTS, CONVERSATION, openCompany } from './company.ts';

const [data = ''] = process.argv.slice(2);
const troupe = await openCompany(data);
const ready = process.cpuUsage();
const began = performance.now();
await troupe.send(CONVERSATION, {
  author: { kind: 'user', id: 'ana', name: 'Ana' },
  to: [AGENTS[0]],
  content: 'What is next?',
});
await troupe.idle();
const ms = performance.now() - began;
const { user, system } = process.cpuUsage();
const turn = process.cpuUsage(ready);
const rss = process.memoryUsage.rss();
console.log(
  JSON.stringify({
    cpuMs: (user + system) / 1_000,
    turnCpuMs: (turn.user + turn.system) / 1_000,
    ms,
    rssMb: rss / 2 ** 20,
  }),
);
await troupe.close();
