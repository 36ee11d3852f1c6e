import * as z from 'zod';
import { TroupeError } from '../../base/errors.ts';
import type { Tool } from '../../tools/tool.ts';

/** Opens what an application gives its tools as `context.app`. */
export type OpenApp<App = unknown> = () => App | Promise<App>;

export const AppSetting = z.custom<OpenApp>(
  (value) => typeof value === 'function',
  'is a function that opens it, such as () => ({ db })',
);

/** The type of `app` that all these tools need. */
export type AppOf<Given> = (Given extends Tool<string, infer App> ? (app: App) => void : never) extends (
  app: infer All,
) => void
  ? All
  : never;

/** The `app` of a definition. Optional only if no tool declares what it needs. */
export type AppField<Given extends Tool> = [Given] extends [never]
  ? unknown
  : unknown extends AppOf<Given>
    ? unknown
    : {
        /** Opens what the tools need, when a troupe is opened; may be async. Closed after the troupe by its `close` or `Symbol.asyncDispose`. */
        app: OpenApp<AppOf<Given>>;
      };

/** What an application gives its tools, and how to close it. */
export interface OpenedApp {
  /** What tools receive as `context.app`. */
  app: unknown;
  /** Closes it once, if it was opened here. */
  readonly close: () => Promise<void>;
}

interface AppParts {
  app?: OpenApp | undefined;
  tools?: readonly Tool[] | undefined;
}

/** Opens `app` of a definition, unless a value is given. Throws `config_invalid` if it cannot be opened or lacks what a tool needs. */
export async function openApp({ app: open, tools = [] }: AppParts, given?: unknown): Promise<OpenedApp> {
  if (given !== undefined || !open) {
    checkNeeds(given, tools);
    return { app: given, close: async () => {} };
  }
  const app = await opened(open);
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= closeApp(app));
  try {
    checkNeeds(app, tools);
  } catch (error) {
    await close();
    throw error;
  }
  return { app, close };
}

async function opened(open: OpenApp): Promise<unknown> {
  try {
    return await open();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError('config_invalid', `app cannot be opened: ${reason}`, {}, { cause });
  }
}

function checkNeeds(app: unknown, tools: readonly Tool[]): void {
  const has = Object(app) as Record<string, unknown>;
  const lacking = tools.flatMap(({ name, needs = [] }) =>
    needs
      .filter((need) => has[need] === undefined || has[need] === null)
      .map((need) => ({ tool: name, need })),
  );
  if (lacking.length === 0) return;
  const list = lacking.map(({ tool, need }) => `the tool ${tool} needs ${need}`).join(', ');
  const why = app === undefined ? 'there is no app' : 'app does not have it';
  const message = `${list}, and ${why}: export app = () => ({ … }) from the agents file, or give createTroupe the option app`;
  throw new TroupeError('config_invalid', message, { lacking });
}

async function closeApp(app: unknown): Promise<void> {
  const closable = Object(app) as Partial<AsyncDisposable & Disposable & { close: () => unknown }>;
  if (closable[Symbol.asyncDispose]) await closable[Symbol.asyncDispose]?.();
  else if (closable[Symbol.dispose]) closable[Symbol.dispose]?.();
  else if (typeof closable.close === 'function') await closable.close();
}
