import type { EngineDeps } from './actors/engine-deps.ts';
import { TroupeError } from './errors.ts';
import { AgentId, type ConversationId, type EventDraft, type TenantId } from './events/index.ts';
import {
  type Format,
  FORMATS,
  type ImportReport,
  importTranscript,
  newImportReport,
} from './import/index.ts';
import type { ImportRequest } from './troupe.ts';

/** Drafts appended at once. */
const BATCH = 500;

/** Appends a transcript, streaming, without waking anybody: what was said in it has been answered. */
export async function importInto(
  deps: EngineDeps,
  tenant: TenantId,
  chunks: AsyncIterable<Uint8Array | string>,
  request: ImportRequest,
): Promise<ImportReport> {
  const report = newImportReport();
  const agent = AgentId.safeParse(request.agent ?? 'assistant');
  if (!agent.success) throw new TroupeError('import_invalid', `agent: ${agent.error.issues[0]?.message}`);
  const agentName = deps.company.get(agent.data)?.profile.name;
  const items = importTranscript(
    chunks,
    {
      format: formatOf(request.format),
      agent: agent.data,
      ...(agentName !== undefined && { agentName }),
      ...(request.conversation !== undefined && { conversation: request.conversation }),
      ...(request.fileName !== undefined && { fileName: request.fileName }),
    },
    report,
  );
  let batch: { conversation: ConversationId; drafts: EventDraft[]; at: number[] } | null = null;
  const flush = async () => {
    if (!batch) return;
    const { conversation, drafts, at } = batch;
    batch = null;
    await deps.log.append({ tenant, conversation }, drafts, {
      at: (index) => at[index] ?? deps.clock.now(),
      wake: false,
    });
  };
  let lastAt = deps.clock.now();
  for await (const { conversation, draft, at } of items) {
    if (batch && (batch.conversation !== conversation || batch.drafts.length >= BATCH)) await flush();
    batch ??= { conversation, drafts: [], at: [] };
    lastAt = at ?? lastAt;
    batch.drafts.push(draft);
    batch.at.push(lastAt);
  }
  await flush();
  return report;
}

function formatOf(format: string | undefined): Format | 'auto' {
  if (format === undefined || format === 'auto') return 'auto';
  const known = FORMATS.find((name) => name === format);
  if (known) return known;
  throw new TroupeError('import_invalid', `there is no format "${format}"; known: ${FORMATS.join(', ')}`, {
    format,
  });
}
