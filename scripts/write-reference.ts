import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Command } from 'commander';
import { createProgram } from '../src/cli/program.ts';
import { Command as PersonCommand } from '../src/events/index.ts';
import { METRICS } from '../src/events/metrics.ts';
import { seriesOf } from '../src/http/metrics.ts';
import { routeTable } from '../src/http/routes/index.ts';
import { DOORS } from '../src/library/integrations/door.ts';
import { openDoors } from '../src/library/runtime/doors.ts';
import { ROOT } from './packed.ts';
import { readCommands, readDeclarations, readErrors, type Section } from './read-declarations.ts';

/**
 * `npm run docs`: writes the pages of `docs/reference` that follow from the code; `-- --site FOLDER` also a site of all pages for users. `test/reference.test.ts` compares them. What is
 * said there stands in the texts that editors show, in the descriptions of commands and in the declarations of routes.
 */
const NOTE = '<!-- Written by `npm run docs`: change the texts in the code. -->\n';

/** Every generated page, by its path. */
export async function referencePages(): Promise<Map<string, string>> {
  const { settings, options, methods, events, notes, evals } = readDeclarations();
  return new Map([
    ['docs/reference/settings.md', page('Settings', SETTINGS, settings.map(section))],
    ['docs/reference/options.md', page('Options in code', OPTIONS, options.map(section))],
    ['docs/reference/methods.md', page('Methods', METHODS, methods.map(section))],
    ['docs/reference/commands.md', page('Commands', COMMANDS, commandSections(createProgram(), 'troupe'))],
    ['docs/reference/errors.md', page('Errors', ERRORS, [errorTable()])],
    ['docs/reference/events.md', page('Events', EVENTS, events.map(section))],
    ['docs/reference/notes.md', page('Notes of running turns', NOTES, notes.map(section))],
    ['docs/reference/evals.md', page('Matchers and options of tests', EVALS, evals.map(section))],
    ['docs/reference/routes.md', page('Routes', ROUTES, [await tableOfRoutes(), commandTable()])],
    ['docs/reference/metrics.md', page('Metrics', METRICS_LEAD, [metricTable()])],
  ]);
}

const SETTINGS = `Everything that the agents file, \`defineTroupe\` and \`createTroupe\` take. What is wrong is refused at the start with its path. How
they work together: [the agents file](agents-file.md).`;
const OPTIONS = `What the functions of \`troupe\` and \`troupe/http\` take beside the company.`;
const METHODS = `\`createTroupe\` gives a \`Troupe\`: [library](../how-to/library.md). \`createTroupeClient\` of \`@troupe/client\` gives a \`TroupeClient\`: [client](../how-to/client.md).`;
const COMMANDS = `\`npx troupe COMMAND\`, in a checkout \`npm run -s troupe -- COMMAND\`. Every command takes \`--json\`, has \`--help\` and exits non-zero on failure.
Commands that read or act talk to the server at \`--url\` or \`TROUPE_URL\`, with the key in \`TROUPE_KEY\` or \`TROUPE_TOKEN\`; without a URL they open
the data directory (\`--data\`, default \`.troupe\`), or talk to the local server that has it open. \`dev\` and \`send\` read \`.env\`; what is set already
wins. When the agents file or a local file that it imports changes, \`dev\` starts the agents anew on the same conversations; if it is wrong, the error is
shown and the old ones go on. \`join\`, \`leave\` and the like are short for \`agent join\`. Ctrl-C finishes the current steps and returns the
leases; a second Ctrl-C stops at once, which is safe too.`;
const ERRORS = `Every error of Troupe is a \`TroupeError\` with a \`code\` of this list, a \`message\` that says what to do, \`data\` with the facts, and a \`policy\`: \`retry\`
later, \`fix_input\` of the call, \`operator\` must act on the machine, \`stop\`: this attempt is over. Codes of HTTP alone, such as \`scope_missing\`, are in
[security](../explanation/security.md#authentication-and-scopes).`;
const EVENTS = `What a log holds, by \`kind\`. Every event also has \`id\`, \`conversation\`, \`seq\`, \`at\`, \`tenant\`, \`author\`, \`to\` and perhaps \`turn\` and \`context\`:
[words](words.md).`;
const NOTES = `What \`stream\` and \`watch\` tell of running turns, besides events ([library](../how-to/library.md#see-what-happens-meanwhile)). Over HTTP they are the frames \`stream\` (text), \`state\` and
\`activity\` (all others, by \`kind\`).`;
const EVALS = `The matchers of \`expect(run)\` in \`@troupe/evals\`, and the options of its functions: [testing](../how-to/testing.md).`;
const ROUTES = `All routes of the API, with the scope that each needs. Bodies, answers and errors are in \`/api/openapi.json\` of a server;
[HTTP](http.md) has a first request.`;

const COMMANDS_OF_PEOPLE = `## Commands
Bodies of \`POST /api/commands\`, and what \`troupe.command\` takes. \`author\` is the caller, by default the operator.`;

const METRICS_LEAD = `What \`GET /metrics\` shows, beside Node's own \`nodejs_…\` and \`process_…\`. Counters start at zero with the process; times are in seconds. Labels have few, known
values: never an id. [Queries](observability.md#metrics), [alerts](../how-to/operations.md#what-to-watch).

\`part\` of a turn is \`wait\` (from the newest event the turn answers to its start; not part of the turn's time), \`build\` (the prompt), \`relief\` (compaction), \`admission\`
(limits of the provider, budgets, the record of an answer), \`first_token\`, \`stream\` (to the last token), \`tools\`, \`back_off\` (before a call is repeated) and \`commit\`,
each the sum over its steps. A turn resumed by another process counts no \`wait\`, and nothing of its time before.`;

function page(title: string, lead: string, sections: readonly string[]): string {
  return `# ${title}\n${NOTE}\n${lead}\n\n${sections.join('\n')}`;
}

function section({ title, text, fields }: Section): string {
  const rows = fields.map(
    ({ name, type, text: effect, byDefault }) =>
      `| \`${name}\` | ${cell(code(type))} | ${cell(byDefault)} | ${cell(effect)} |\n`,
  );
  const table =
    rows.length === 0 ? '' : `\n| name | type | default | effect |\n|---|---|---|---|\n${rows.join('')}`;
  return `## ${title}\n${text === '' ? '' : `${text}\n`}${table}`;
}

const code = (text: string) => (text === '' ? '' : `\`${text}\``);
const cell = (text: string) => text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');

function commandSections(command: Command, path: string): string[] {
  return command.commands.flatMap((each) => {
    const name = `${path} ${each.name()}`;
    if (each.description().startsWith('the same as: ')) return [];
    const args = each.registeredArguments.map((argument) =>
      argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
    );
    const told = each.registeredArguments.filter(({ description }) => description !== '');
    const rows = [
      ...told.map((argument) => row(argument.name(), argument.description, argument.defaultValue)),
      ...each.options
        .filter(({ long }) => long !== '--json')
        .map((option) =>
          row(option.flags, choices(option.description, option.argChoices), option.defaultValue),
        ),
    ];
    const own = `## ${[name, ...args].join(' ')}\n${capital(each.description())}.\n`;
    const table = rows.length === 0 ? '' : `\n| | default | |\n|---|---|---|\n${rows.join('')}`;
    return each.commands.length > 0 ? commandSections(each, name) : [own + table];
  });
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const choices = (text: string, given: readonly string[] | undefined) =>
  given === undefined ? text : [text, given.join(', ')].filter(Boolean).join(': ');

function row(name: string, text: string, byDefault: unknown): string {
  const isShown = typeof byDefault === 'string' || typeof byDefault === 'number';
  return `| \`${cell(name)}\` | ${isShown ? code(String(byDefault)) : ''} | ${cell(text)} |\n`;
}

function errorTable(): string {
  const rows = readErrors().map(
    ({ code: name, policy, text }) => `| \`${name}\` | ${policy} | ${cell(text)} |\n`,
  );
  return `| code | policy | what has happened, and the remedy |\n|---|---|---|\n${rows.join('')}`;
}

function metricTable(): string {
  const rows = Object.entries(METRICS).map(([key, { type, labels, means }]) => {
    const names = Object.keys(labels).join(',');
    return `| \`${seriesOf(key, type)}${names && `{${names}}`}\` | ${cell(means)} |\n`;
  });
  return `| metric | meaning |\n|---|---|\n${rows.join('')}`;
}

async function tableOfRoutes(): Promise<string> {
  const rows = routeTable(await openDoors(DOORS)).routes.map(
    ({ method, path: route, scopes, query, summary }) => {
      const needed = scopes === 'public' ? 'none' : scopes.join(', ');
      const names = Object.keys(query?.shape ?? {}).map((name) => code(name));
      return `| \`${method} ${route.replaceAll(/\{(\w+)\}/g, ':$1')}\` | ${needed} | ${names.join(' ')} | ${cell(summary)} |\n`;
    },
  );
  return `| route | scope | query | what |\n|---|---|---|---|\n${rows.join('')}`;
}

function commandTable(): string {
  const texts = readCommands();
  const rows = PersonCommand.options
    .filter((command) => command.meta()?.deprecated !== true)
    .map(({ shape }) => {
      const { command, ...fields } = shape;
      const names = Object.entries(fields).map(([name, schema]) =>
        code(schema.safeParse(undefined).success ? `${name}?` : name),
      );
      return `| \`${command.value}\` | ${names.join(' ')} | ${cell(texts.get(command.value) ?? '')} |\n`;
    });
  return `${COMMANDS_OF_PEOPLE}\n\n| \`command\` | with | what |\n|---|---|---|\n${rows.join('')}`;
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { site: { type: 'string' } } });
  for (const [file, text] of await referencePages()) writeFileSync(path.join(ROOT, file), text);
  if (values.site) {
    const { buildSite } = await import('./build-site.ts');
    console.log(`${buildSite(values.site)} pages: open ${path.join(values.site, 'index.html')}`);
  }
}
