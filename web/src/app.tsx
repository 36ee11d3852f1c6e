import { effect, untracked } from '@preact/signals';
import { Banners } from './parts/banners.tsx';
import { Header } from './parts/header.tsx';
import { SkipLink } from './parts/skip-link.tsx';
import { fetchOnApproach, later } from './shared/later.tsx';
import { dialog } from './state/dialogs.ts';
import { connection } from './state/connection.ts';
import { openConversation, readings } from './state/live.ts';
import { refusal } from './state/refusal.ts';
import { conversation, route } from './state/route.ts';

const Conversation = later(async () => (await import('./parts/conversation.tsx')).Conversation);
const Costs = later(async () => (await import('./parts/costs.tsx')).Costs);
const Compare = later(async () => (await import('./parts/compare.tsx')).Compare);
const EraseDialog = later(async () => (await import('./parts/erase-dialog.tsx')).EraseDialog);
const Gone = later(async () => (await import('./parts/gone.tsx')).Gone);
const Help = later(async () => (await import('./parts/help.tsx')).Help);
const Home = later(async () => (await import('./parts/home.tsx')).Home);
const Palette = later(async () => (await import('./parts/palette.tsx')).Palette);
const Routes = later(async () => (await import('./parts/routes.tsx')).Routes);
const TokenForm = later(async () => (await import('./parts/token-form.tsx')).TokenForm);

// A pointer or focus on a conversation's line means that it is about to be opened.
fetchOnApproach('.inbox-row', [Conversation]);

const TITLES = { '': '', costs: 'Costs', routes: 'API', compare: 'Comparison', unknown: 'No such page' };

// Requested before the first frame, because the answer takes longer than drawing it.
effect(() => {
  const id = conversation.value;
  untracked(() => {
    openConversation(id);
  });
});
effect(() => {
  const { conversation: id, view, turn } = route.value;
  const name = turn ?? id ?? TITLES[view];
  document.title = name === '' ? 'Troupe' : `${name} · Troupe`;
});

const PAGES = { '': Home, costs: Costs, routes: Routes, compare: Compare, unknown: Gone };

/** What the address leads to. */
function Shown() {
  const id = conversation.value;
  const { state } = connection.value;
  if (state === 'token') return <TokenForm />;
  if (id === null) {
    const Page = PAGES[route.value.view];
    return <Page />;
  }
  if (state === 'gone') return <Gone />;
  return <Conversation key={`${id} ${readings.value}`} id={id} />;
}

export function App() {
  const over = dialog.value;
  return (
    <>
      <SkipLink />
      <Header />
      <Banners />
      <Shown />
      {refusal.value !== null && (
        <p class="refusal" role="alert">
          {refusal.value}{' '}
          <button type="button" class="button" onClick={() => (refusal.value = null)}>
            Close
          </button>
        </p>
      )}
      {over?.name === 'palette' && <Palette key={over.number} about={over.about} />}
      {over?.name === 'erase' && <EraseDialog key={over.number} subject={over.subject} />}
      {over?.name === 'help' && <Help key={over.number} />}
    </>
  );
}
