import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { TroupeError } from '../../base/errors.ts';
import {
  mergePackage,
  type Choice,
  type Language,
  LANGUAGES,
  packageParts,
  projectFiles,
  TEMPLATE,
  type TemplateName,
  TEMPLATES,
} from '../init/project-files.ts';
import { paint, print, printJson } from '../render/output.ts';
import { version } from '../process/version.ts';

interface InitOptions {
  template?: TemplateName;
  lang?: Language;
  yes?: boolean;
  force?: boolean;
  json?: boolean;
}

/** The exit code that shells report for a program ended by Ctrl-C. */
const INTERRUPTED = 130;
const PACKAGE = 'package.json';
const LABEL: Record<Language, string> = { ts: 'TypeScript', json: 'JSON' };

/** Writes a new project into `dir`. On a terminal, asks for missing choices. Throws `config_invalid` before overwriting a file. */
export async function init(dir: string, options: InitOptions): Promise<void> {
  const { force = false, json } = options;
  const root = resolve(dir);
  const choice = await chooseProject(options);
  if (choice === null) {
    process.stderr.write('\nnothing was written\n');
    process.exitCode = INTERRUPTED;
    return;
  }
  const manifest = await mergePackage(join(root, PACKAGE), root, packageParts(choice.lang, version()));
  const files = projectFiles(choice);
  const taken = Object.keys(files).filter((name) => existsSync(join(root, name)));
  if (manifest.conflict !== null) taken.push(manifest.conflict);
  if (taken.length > 0 && !force) {
    const message = `${root} already has ${taken.join(', ')}; nothing was written. Choose another directory, or overwrite with --force`;
    throw new TroupeError('config_invalid', message, { dir: root, files: taken });
  }
  await mkdir(root, { recursive: true });
  const written = { ...files, [PACKAGE]: manifest.text };
  for (const [name, text] of Object.entries(written)) await writeFile(join(root, name), text);
  const next = nextCommands(root);
  if (json) printJson({ dir: root, ...choice, files: Object.keys(written), next });
  else showWritten(root, Object.keys(written), next);
}

/** Null after Ctrl-C or Ctrl-D. */
async function chooseProject({ template, lang, yes, json }: InitOptions): Promise<Choice | null> {
  const asks = process.stdin.isTTY && process.stdout.isTTY && !yes && !json;
  if (!asks) return { template: template ?? 'agent', lang: lang ?? 'ts' };
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const labels = TEMPLATES.map((name) => TEMPLATE[name].label);
    const languages = LANGUAGES.map((name) => LABEL[name]);
    return {
      template: template ?? TEMPLATES[await pick(terminal, 'What to start from?', labels)] ?? 'agent',
      lang: lang ?? LANGUAGES[await pick(terminal, 'Agents written in?', languages)] ?? 'ts',
    };
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return null;
    throw error;
  } finally {
    terminal.close();
  }
}

/** The index of a choice; Enter takes the first. */
async function pick(
  terminal: ReturnType<typeof createInterface>,
  question: string,
  choices: readonly string[],
): Promise<number> {
  const lines = choices.map((choice, index) => `  ${index + 1}  ${choice}`).join('\n');
  for (;;) {
    const answer = (await terminal.question(`${question}\n${lines}\n[1] > `)).trim() || '1';
    const index = Number(answer) - 1;
    if (choices[index] !== undefined) return index;
    print(`Type a number from 1 to ${choices.length}.`);
  }
}

function nextCommands(root: string): string[] {
  const path = relative(process.cwd(), root);
  return [
    ...(path === '' ? [] : [`cd ${/^[\w./-]+$/.test(path) ? path : JSON.stringify(path)}`]),
    'npm install',
    'npm test',
    'npm start',
    'npm run dev',
  ];
}

const PURPOSE: Record<string, string> = {
  'npm test': 'the agents over a script: no key needed',
  'npm start': 'one question and its answer',
  'npm run dev': 'the agents, their API and their page',
};

function showWritten(root: string, files: readonly string[], next: readonly string[]): void {
  print(paint('bold', `Written to ${root}: ${files.join(', ')}`));
  print('\nNext:');
  for (const command of next) {
    const purpose = PURPOSE[command];
    print(`  ${purpose ? command.padEnd(14) + paint('dim', purpose) : command}`);
  }
}
