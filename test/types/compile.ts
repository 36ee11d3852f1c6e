import { readFileSync } from 'node:fs';
import type * as ts from 'typescript-5.9';

/** What is asked of a compiler: modules, and places in some of them where names are asked for. */
export interface Question {
  /** Path of a tsconfig.json. */
  readonly config: string;
  readonly modules: readonly string[];
  readonly asked: readonly { module: string; at: number }[];
}

/** The errors of each module, and the names that are offered at each place. */
export interface Told {
  readonly version: string;
  readonly errors: readonly { module: string; at: number; length: number; text: string }[];
  readonly offered: readonly (readonly string[])[];
}

/** Asks a compiler of the 5th generation. */
async function askOld(name: string, { config, modules, asked }: Question): Promise<Told> {
  const compiler = ((await import(name)) as { default: typeof ts }).default;
  const { config: written } = compiler.readConfigFile(config, (file) => compiler.sys.readFile(file));
  const parsed = compiler.parseJsonConfigFileContent(written, compiler.sys, config.replace(/[^/]*$/, ''));
  const service = compiler.createLanguageService({
    ...compiler.sys,
    getCompilationSettings: () => parsed.options,
    getScriptFileNames: () => [...modules, ...asked.map(({ module }) => module)],
    useCaseSensitiveFileNames: () => true,
    getScriptVersion: () => '1',
    getScriptSnapshot: (file) => {
      const text = compiler.sys.readFile(file);
      return text === undefined ? undefined : compiler.ScriptSnapshot.fromString(text);
    },
    getDefaultLibFileName: (options) => compiler.getDefaultLibFilePath(options),
  });
  const errors = modules.flatMap((module) =>
    service.getSemanticDiagnostics(module).map(({ start = -1, length = 0, messageText }) => ({
      module,
      at: start,
      length,
      text: compiler.flattenDiagnosticMessageText(messageText, '\n'),
    })),
  );
  const offered = asked.map(({ module, at }) =>
    (service.getCompletionsAtPosition(module, at, {})?.entries ?? []).map((entry) => entry.name),
  );
  return { version: compiler.version, errors, offered };
}

/** Asks the compiler of this repository. */
async function askNew({ config, modules, asked }: Question): Promise<Told> {
  const { API } = await import('typescript/unstable/sync');
  const { version } = (await import('typescript')) as { version: string };
  const api = new API();
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProjects()[0];
    if (!project) throw new Error(`there is no project at ${config}`);
    type Given = ReturnType<typeof project.program.getSemanticDiagnostics>[number];
    const flat = ({ text, messageChain = [] }: Given): string => [text, ...messageChain.map(flat)].join('\n');
    const errors = modules.flatMap((module) =>
      project.program.getSemanticDiagnostics(module).map((error) => ({
        module,
        at: error.pos,
        length: error.end - error.pos,
        text: flat(error),
      })),
    );
    const offered = asked.map(({ module, at }) =>
      (project.checker.getCompletionsAtPosition(module, at)?.entries ?? []).map((entry) => entry.name),
    );
    return { version, errors, offered };
  } finally {
    api.close();
  }
}

/** In a process of its own, whose memory is then free again. */
if (import.meta.main) {
  const [, , name = '', file = ''] = process.argv;
  const question = JSON.parse(readFileSync(file, 'utf8')) as Question;
  const told = await (name === 'typescript' ? askNew(question) : askOld(name, question));
  console.log(JSON.stringify(told));
}
