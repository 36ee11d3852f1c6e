import { type Context, Hono } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { toTroupeError } from '../../base/errors.ts';
import type { ScoredRun } from './evals-package.ts';
import { codingsFor } from '../../http/codings.ts';
import { checkHost, READS } from '../../http/guard.ts';
import { PAGE_HEADERS, BUILT_PAGE, readWebFile } from '../../http/page/page.ts';
import { errorResponse, Refusal } from '../../http/refusal.ts';
import type { OpenRuns } from './open-runs.ts';
import { LINKS, type Markup, problemPage, dataOf, runOf, type ShownScores, type Side } from './page-frame.ts';
import { runPage, type RunSide } from './run-page.ts';
import { runsPage, scoresPage, type Shown } from './scores-page.ts';

/** The pages of `troupe eval show`: scores, runs side by side, and the console of each kept run. Everything is read-only. */
export function createEvalApp(shown: ShownScores, runs: OpenRuns): Hono {
  const app = new Hono();
  app.use(async (context, next) => {
    // A page of another origin can let its host name point to this machine.
    checkHost(context.req, {});
    if (!READS.has(context.req.method))
      throw new Refusal(403, 'read_only', 'what was kept of runs is read and not written to');
    await next();
  });
  app.get('/', (context) => {
    const { show, page, scenario } = context.req.query();
    return answer(context, scoresPage(shown, { show: shownOf(show), page: numberOf(page), scenario }));
  });
  app.get('/runs', (context) => {
    const { scenario = '', page } = context.req.query();
    if (!shown.after.scenarios.has(scenario)) throw unknown(context);
    return answer(context, runsPage(shown, scenario, numberOf(page)));
  });
  app.get('/run', async (context) => {
    const { scenario = '', seed, lines } = context.req.query();
    const number = numberOf(seed);
    const scored = {
      before: runOf(shown.before, scenario, number),
      after: runOf(shown.after, scenario, number),
    };
    if (!scored.before && !scored.after) throw unknown(context);
    const sides = {
      before: await readSide(shown, runs, 'before', scored.before),
      after: await readSide(shown, runs, 'after', scored.after),
    };
    const page = {
      scenario,
      seed: number,
      lines: lines === 'changed' ? ('changed' as const) : ('all' as const),
      scored,
      sides,
    };
    return answer(context, runPage(shown, page));
  });
  for (const file of ['evals.css', 'favicon.svg']) app.get(`/${file}`, (context) => styleOf(context, file));
  for (const side of ['before', 'after'] as const) {
    for (const path of ['', '/*'])
      app.get(`/${side}/:conversation${path}`, async (context) => {
        const conversation = context.req.param('conversation') ?? '';
        const stored = shown[side];
        const data = stored && dataOf(stored, conversation);
        if (!data) throw unknown(context);
        const { raw } = context.req;
        return runs.use(LINKS.console(side, conversation), data, (run) => run.app.fetch(raw, context.env));
      });
  }
  app.notFound((context) => problem(context, unknown(context)));
  app.onError((error, context) => problem(context, error));
  return app;
}

function answer(context: Context, page: Markup): Response | Promise<Response> {
  return context.html(page, 200, { ...PAGE_HEADERS, 'cache-control': 'no-store' });
}

/** Answers a browser with a page that links back, and the console's requests like the API. */
async function problem(context: Context, thrown: unknown): Promise<Response> {
  const answered = errorResponse(context, thrown, reportError);
  const { method } = context.req;
  // A page of another origin gets only what the API would tell it.
  const isRead = READS.has(method) && (context.req.header('accept') ?? '').includes('text/html');
  if (!isRead || answered.status === 403) return answered;
  const { error } = (await answered.json()) as { error: { code: string; message: string } };
  const page = problemPage(`${error.code}: ${error.message}`);
  return context.html(page, answered.status as ContentfulStatusCode, PAGE_HEADERS);
}

async function styleOf(context: Context, file: string): Promise<Response> {
  const found = await readWebFile(BUILT_PAGE, file, codingsFor(context));
  if (!found) throw unknown(context);
  return context.body(found.bytes, 200, {
    ...PAGE_HEADERS,
    'content-type': found.type,
    ...(found.encoding && { 'content-encoding': found.encoding }),
    'cache-control': 'no-cache',
    vary: 'accept-encoding',
  });
}

/** A side's data of a run. A problem with them is shown in their place, beside the scores. */
async function readSide(
  shown: ShownScores,
  runs: OpenRuns,
  side: Side,
  scored: ScoredRun | undefined,
): Promise<RunSide> {
  const stored = shown[side];
  if (!stored || !scored) return { kind: 'missing', why: 'There is no such run.' };
  const { conversation } = scored;
  const data = dataOf(stored, conversation);
  if (conversation === undefined || data === null) {
    const why = 'The data of this run were not kept: score it with keep, and leave its folder where it is.';
    return { kind: 'missing', why };
  }
  try {
    return await runs.use(LINKS.console(side, conversation), data, async ({ troupe }) => {
      const { lines } = await shown.evals.readKeptRun(troupe, conversation);
      return { kind: 'read', conversation, lines } as const;
    });
  } catch (error) {
    const { code, message } = toTroupeError(error);
    return { kind: 'missing', why: `The data of this run cannot be read. ${code}: ${message}` };
  }
}

function shownOf(text: string | undefined): Shown {
  return text === 'changed' || text === 'failed' ? text : 'all';
}

/** 1 if the text is not a number. */
function numberOf(text: string | undefined): number {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : 1;
}

function unknown(context: Context): Refusal {
  return new Refusal(404, 'route_unknown', `there is nothing at ${context.req.path}; see /`);
}

/** The answer shows what is wrong with the data. */
function reportError(error: unknown): void {
  if (toTroupeError(error).code === 'internal') console.error('troupe: a request failed:', error);
}
