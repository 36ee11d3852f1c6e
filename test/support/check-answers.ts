import type { Hono } from 'hono';
import * as z from 'zod';
import { openApiDocument } from '../../src/http/api/index.ts';
import { DOORS } from '../../src/library/integrations/door.ts';
import { openDoors } from '../../src/library/runtime/doors.ts';

const Answer = z.object({
  $ref: z.string().optional(),
  content: z.record(z.string(), z.object({ schema: z.looseObject({}).optional() })).optional(),
  headers: z.record(z.string(), z.unknown()).optional(),
});
type Answer = z.infer<typeof Answer>;
const Document = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ responses: z.record(z.string(), Answer) }))),
  components: z.object({
    schemas: z.record(z.string(), z.unknown()),
    responses: z.record(z.string(), Answer),
  }),
});

interface Operation {
  /** Such as `GET /api/turns/{turn}`. */
  name: string;
  responses: Record<string, Answer>;
}

/** Larger answers are checked by their status and media type only. */
const MAX_CHECKED = 262_144;

interface Known {
  document: z.infer<typeof Document>;
  paths: (readonly [RegExp, Record<string, Operation>])[];
}
let known: Known | undefined;
const validators = new Map<string, z.ZodType>();

/** Makes every answer of `app.request` fail its test if the API's own document does not describe it. */
export function checkAnswers(app: Hono): void {
  const { fetch } = app;
  app.fetch = async (request, ...rest) => {
    const response = await fetch(request, ...rest);
    await checkAnswer(request, response);
    return response;
  };
}

async function checkAnswer({ method, url }: Request, response: Response): Promise<void> {
  known ??= await readDocument();
  const { document } = known;
  const { pathname } = new URL(url);
  const operations = known.paths.find(([pattern]) => pattern.test(pathname))?.[1];
  const operation = operations?.[method === 'HEAD' ? 'GET' : method];
  const { status, headers } = response;
  if (!operations) return;
  if (!operation) {
    if (status === 405 && !headers.has('allow'))
      throw new Error(`${method} ${pathname}: 405 without "allow"`);
    return;
  }
  const { name } = operation;
  const declared = operation.responses[status];
  if (!declared) throw new Error(`${name} answered ${status}, which the document does not declare`);
  const answer = declared.$ref
    ? document.components.responses[declared.$ref.split('/').at(-1) ?? '']
    : declared;
  const type = headers.get('content-type')?.split(';')[0];
  if (type === undefined) return;
  const content = answer?.content?.[type];
  if (!content) throw new Error(`${name} answered ${status} as ${type}, which the document does not declare`);
  if (type !== 'application/json' || method === 'HEAD' || !content.schema) return;
  if (headers.has('content-encoding')) return;
  const text = await response.clone().text();
  if (text.length > MAX_CHECKED) return;
  const { error } = validatorOf(content.schema, document).safeParse(JSON.parse(text));
  if (error)
    throw new Error(`${name} answered ${status}, which does not fit its schema: ${z.prettifyError(error)}`);
}

function validatorOf(schema: object, document: Known['document']): z.ZodType {
  const text = JSON.stringify({ ...schema, $defs: document.components.schemas });
  const found = validators.get(text);
  if (found) return found;
  const local = JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/')) as object;
  const made = z.fromJSONSchema(local as Parameters<typeof z.fromJSONSchema>[0]);
  validators.set(text, made);
  return made;
}

/** That of an app with all doors. */
async function readDocument(): Promise<Known> {
  const document = Document.parse(openApiDocument({ doors: await openDoors(DOORS) }));
  const paths = Object.entries(document.paths).map(([path, methods]) => {
    const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`);
    const operations = Object.entries(methods).map(([method, { responses }]) => {
      const upper = method.toUpperCase();
      return [upper, { name: `${upper} ${path}`, responses }] as const;
    });
    return [pattern, Object.fromEntries(operations)] as const;
  });
  return { document, paths };
}
