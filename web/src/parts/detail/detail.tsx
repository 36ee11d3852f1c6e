import '../../style/detail.css';
import { route, type Tab } from '../../state/route.ts';
import { DetailHead } from './detail-head.tsx';
import { DetailTabs } from './detail-tabs.tsx';
import { EventHead } from './event-head.tsx';
import { chosen, turnLabel } from './chosen.ts';
import { fetchOnApproach, later } from '../../shared/later.tsx';
import { StateTab } from './state-tab.tsx';
import { useTrace } from './turn-answers.ts';

const DiffTab = later(async () => (await import('./diff-tab.tsx')).DiffTab);
const EventsTab = later(async () => (await import('./events-tab.tsx')).EventsTab);
const PromptTab = later(async () => (await import('./prompt-tab.tsx')).PromptTab);
const RawTab = later(async () => (await import('./raw-tab.tsx')).RawTab);
const ToolsTab = later(async () => (await import('./tools-tab.tsx')).ToolsTab);

const PANELS: Record<Tab, preact.ComponentType> = {
  state: StateTab,
  prompt: PromptTab,
  diff: DiffTab,
  tools: ToolsTab,
  events: EventsTab,
  raw: RawTab,
};

fetchOnApproach('.detail-tabs', [PromptTab, DiffTab]);

/** The right column: the state of the selected agent and turn, and the reasons for it. */
export function Detail() {
  const { tab, event } = route.value;
  const { agent, agentId, turn, turnId } = chosen.value;
  const named = useTrace(turn === null && turnId === route.value.turn ? turnId : null);
  if (named.state === 'failed' && named.code === 'turn_unknown' && turnId !== null)
    return (
      <section class="detail" aria-label="Detail">
        <p class="detail-note">
          There is no {turnLabel(turnId)} of {agentId}.
        </p>
      </section>
    );
  if (!agent && turnId === null && event === null) {
    return (
      <section class="detail" aria-label="Detail">
        <p class="detail-note detail-nobody">
          No agent has taken part yet. Send a message to one to see it here.
        </p>
      </section>
    );
  }
  const Panel = PANELS[tab];
  return (
    <section class="detail" aria-label="Detail">
      {agentId === null && event !== null ? <EventHead seq={event} key={event} /> : <DetailHead />}
      <DetailTabs />
      <div
        class="detail-panel"
        role="tabpanel"
        id="detail-panel"
        aria-labelledby={`detail-tab-${tab}`}
        tabIndex={0}
        key={tab}
      >
        <Panel />
      </div>
    </section>
  );
}
