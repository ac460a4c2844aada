from sketchnet.cli import main

main()
