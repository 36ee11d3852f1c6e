import { href } from '../state/route.ts';

/** The first stop of the Tab key: leads past the header and the lists to the content. */
export function SkipLink() {
  return (
    <nav aria-label="Skip">
      <a
        class="skip-link"
        href={`${href({})}#main`}
        onClick={(event) => {
          event.preventDefault();
          focusMain();
        }}
      >
        Skip to the content
      </a>
    </nav>
  );
}

function focusMain(): void {
  const main = document.querySelector<HTMLElement>('main');
  // The conversation itself if it is shown, because arrow keys then scroll it.
  const target = main?.querySelector<HTMLElement>('[role="log"]') ?? main;
  if (!target) return;
  if (target.tabIndex < 0) target.tabIndex = -1;
  target.focus();
}
