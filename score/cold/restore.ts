import { CONVERSATION, openCompany } from './company.ts';

/** Usage: `node restore.ts FROM DIR`. Imports the export of the conversation into a new data directory. Prints the ms of CPU it took. */
const [from = '', data = ''] = process.argv.slice(2);
const source = await openCompany(from);
const lines: string[] = [];
for await (const line of source.export(CONVERSATION)) lines.push(line);
await source.close();
const troupe = await openCompany(data);
const before = process.cpuUsage();
await troupe.import(chunks(), { conversation: CONVERSATION, format: 'troupe' });
const { user, system } = process.cpuUsage(before);
console.log((user + system) / 1_000);
await troupe.close();

async function* chunks() {
  yield* lines;
}
